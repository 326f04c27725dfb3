import { setFlagsFromString } from 'node:v8';

/**
 * Flags of V8's garbage collector for a process that decides, whose every stop is a wait for somebody. V8 reads them at
 * each collection, so that they hold from the next one on.
 */
const FLAGS = [
  // V8 makes objects old from the start if those that the same code made before lived long enough, such as the rows of
  // a long answer. They are garbage a moment later, which only a collection of the whole heap finds: 2 to 7 ms.
  '--no-allocation-site-pretenuring',
  // Young objects that live are few here, and one thread copies them sooner than it has woken others, which wait for a
  // core where all are busy.
  '--no-parallel-scavenge',
];

/** Keeps the stops of the event loop for garbage short. To be called before the process has much to do. */
export function tuneCollector(): void {
  for (const flag of FLAGS) setFlagsFromString(flag);
}
