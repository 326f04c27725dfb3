import { setFlagsFromString } from 'node:v8';
import { isNodeOlderThan } from './settings/notes/node-version.js';

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
 * hostile connections stay within 256 MiB (test/memory). Node.js 20 knows only some of the flags and Node.js 26 none of
 * them: both would print a warning.
 */
const GC_FLAGS_OF_NODE_22_TO_24 = [
  // Otherwise V8 does not collect young objects while it marks old ones, and their space grows by 32 MB or more.
  '--no-separate-gc-phases',
  // V8 collects young buffers at four times this size. By default, it waits for 128 MB of them.
  '--scavenger-max-new-space-capacity-mb=4',
];

/** Sets the flags that keep pauses of the garbage collector short and the heap small. Call it early in the start. */
export function applyGcFlags(): void {
  for (const flag of GC_FLAGS) setFlagsFromString(flag);
  if (isNodeOlderThan(22, 0) || !isNodeOlderThan(25, 0)) return;
  for (const flag of GC_FLAGS_OF_NODE_22_TO_24) setFlagsFromString(flag);
}
