import { setFlagsFromString } from 'node:v8';
import { isNodeOlderThan } from './settings/notes/node-version.js';

/**
 * Flags of V8's garbage collector for a process that decides, whose every stop is a wait for somebody. V8 reads them at
 * each collection, so that they hold from the next one on.
 */
const GC_FLAGS = [
  // V8 makes objects old from the start if those that the same code made before lived long enough, such as the rows of
  // a long answer. They are garbage a moment later, which only a collection of the whole heap finds: 2 to 7 ms.
  '--no-allocation-site-pretenuring',
  // Young objects that live are few here, and one thread copies them sooner than it has woken others, which wait for a
  // core where all are busy.
  '--no-parallel-scavenge',
];

/**
 * Flags that let Node.js 22 and 24 collect garbage as early as Node.js 20 does by itself, so that a thousand hostile
 * connections stay within 256 MiB (test/memory). Node.js 20 does not know all of them and Node.js 26 knows none: both
 * would complain on standard error.
 */
const GC_FLAGS_OF_NODE_22_TO_24 = [
  // V8 would collect no young objects while it marks old ones, and let their space grow by 32 MB and more instead.
  '--no-separate-gc-phases',
  // Young buffers are collected when they take four times as many megabytes. V8 would wait for 128 MB of them.
  '--scavenger-max-new-space-capacity-mb=4',
];

/**
 * Keeps the stops of the event loop for garbage short, and the garbage small. Call it before the process has much to
 * do.
 */
export function applyGcFlags(): void {
  for (const flag of GC_FLAGS) setFlagsFromString(flag);
  if (isNodeOlderThan(22, 0) || !isNodeOlderThan(25, 0)) return;
  for (const flag of GC_FLAGS_OF_NODE_22_TO_24) setFlagsFromString(flag);
}
