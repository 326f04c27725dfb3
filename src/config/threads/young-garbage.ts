import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Slices between two collections: those of 4 have about a millisecond of objects to copy. */
const SLICES = 4;

type Collect = (options: { readonly type: 'minor' }) => void;

/**
 * V8's own function, which it shows only when asked to, by a flag of the whole process that is taken back at once.
 * Undefined where V8 has it no more: then collections are its own affair, and only longer.
 */
function exposeCollector(): Collect | undefined {
  setFlagsFromString('--expose-gc');
  const gc: unknown = runInNewContext('typeof gc === "function" ? gc : undefined');
  setFlagsFromString('--no-expose-gc');
  return typeof gc === 'function' ? (gc as Collect) : undefined;
}

/** Asked for once, with the first policy that is built. */
let exposed: { readonly collect: Collect | undefined } | undefined;

/**
 * Collects young objects while a large policy is built. Nearly all of what is built stays, and a collection has to copy
 * it: left to itself V8 waits until there are 16 MB, and then stops for more than 10 ms. Often and little costs no more
 * in all (bench: policy-load).
 */
export class YoungGarbage {
  private readonly collect: Collect | undefined;
  private slices = 0;

  constructor() {
    exposed ??= { collect: exposeCollector() };
    this.collect = exposed.collect;
  }

  /** Whether V8 can be asked. */
  get works(): boolean {
    return this.collect !== undefined;
  }

  /** After each slice. */
  slice(): void {
    if (++this.slices % SLICES === 0) this.collect?.({ type: 'minor' });
  }
}
