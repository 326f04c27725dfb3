import { readdirSync, readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { readRegularFile } from '../runtime/regular-file.js';

/** Minimum version of Node.js, equal to `engines` in package.json. */
const OLDEST = { major: 22, minor: 15 };

/** Returns whether a version of Node.js, by default that of this process, is older than `major.minor`. */
export function isNodeOlderThan(major: number, minor: number, version = process.versions.node): boolean {
  const [ownMajor = 0, ownMinor = 0] = version.split('.').map(Number);
  return ownMajor < major || (ownMajor === major && ownMinor < minor);
}

/** Returns a warning if Node.js is older than the supported versions. weir runs with it, but is not tested. */
export function nodeVersionNotes(version = process.versions.node): string[] {
  const { major, minor } = OLDEST;
  if (!isNodeOlderThan(major, minor, version)) return [];
  return [
    `Node.js ${version} is older than ${major}.${minor}, the oldest version that weir supports; install Node.js 24`,
  ];
}

/**
 * Flags of V8's garbage collector. Each pause of the collector delays the requests of callers. V8 reads the flags at
 * each collection, so that they apply from the next one on.
 */
const GC_FLAGS = [
  // V8 allocates objects in the old generation if earlier objects from the same code survived, such as the rows of a
  // long answer. These objects soon become garbage that only a full collection of 2 to 7 ms frees.
  '--no-allocation-site-pretenuring',
  // Few young objects survive here. One thread copies them faster than helper threads wake up, which wait for a core if
  // all are busy.
  '--no-parallel-scavenge',
];

/**
 * Flags for Node.js 22 and 24, so that they collect garbage as early as Node.js 20 does by default and a thousand
 * hostile connections stay within 256 MiB (test/attack). Node.js 20 knows only some of the flags and Node.js 26 none of
 * them: both would print a warning.
 */
const GC_FLAGS_OF_NODE_22_TO_24 = [
  // Otherwise V8 does not collect young objects while it marks old ones, and their space grows by 32 MB or more.
  '--no-separate-gc-phases',
  // V8 collects young buffers at four times this size. By default, it waits for 128 MB of them.
  '--scavenger-max-new-space-capacity-mb=4',
];

/**
 * A low priority, about a tenth of the core's time next to the thread that decides requests. It must not be the lowest:
 * at the end of a collection, the deciding thread waits for the helper threads, and a thread that loads policies would
 * keep them from the core for 100 ms.
 */
const HELPER_NICENESS = 10;
/** Threads of this process, one folder each (proc_pid_task(5)). Only Linux has it. */
const THREADS = '/proc/self/task';

/**
 * Lowers the priority of V8's four helper threads, which mark old objects and compile code. With one core, the kernel
 * otherwise runs each of them for 4 ms before the thread that decides requests continues. On Linux, a priority belongs
 * to a thread, and any thread may lower it (setpriority(2)). Before version 24, Node.js gives all of its threads the
 * same name, so that the helpers keep their priority.
 */
function lowerHelperThreads(): void {
  try {
    for (const thread of readdirSync(THREADS)) {
      const name = readFileSync(`${THREADS}/${thread}/comm`, 'latin1');
      if (name === 'V8Worker\n') setPriority(Number(thread), HELPER_NICENESS);
    }
  } catch {
    // Without /proc, or if a thread has just ended, the other threads keep their priority.
  }
}

/**
 * Keeps the pauses of the garbage collector and of its helper threads short, and the heap small. Call it early in the
 * start.
 */
export function tuneGarbageCollector(): void {
  lowerHelperThreads();
  for (const flag of GC_FLAGS) setFlagsFromString(flag);
  if (isNodeOlderThan(22, 0) || !isNodeOlderThan(25, 0)) return;
  for (const flag of GC_FLAGS_OF_NODE_22_TO_24) setFlagsFromString(flag);
}

/** Files other than connections: listeners, Redis, logs, policy files. */
const OTHER_FILES = 100;
/** Maximum number of bytes that are read; the file of Linux is far smaller. */
const MAX_LIMITS_BYTES = 64 * 1024;

/**
 * Returns a warning if the limit of open files is below `maxConnections`, because the system would then refuse
 * connections before weir does. Returns undefined if the limit is high enough, or unknown (only Linux has `/proc`).
 */
export function fileLimitWarning(maxConnections: number): string | undefined {
  let limits: string;
  try {
    limits = readRegularFile('/proc/self/limits', MAX_LIMITS_BYTES).toString();
  } catch {
    return undefined;
  }
  return checkFileLimit(limits, maxConnections);
}

/** Checks the text of `/proc/self/limits`; see {@link fileLimitWarning}. */
export function checkFileLimit(limits: string, maxConnections: number): string | undefined {
  const files = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY);
  if (files >= maxConnections) return undefined;
  return (
    `this process can open only ${files} files, too few for GRPC_MAX_CONNECTIONS=${maxConnections}; raise ` +
    `the limit (ulimit -n) to ${maxConnections + OTHER_FILES}, or lower the setting`
  );
}
