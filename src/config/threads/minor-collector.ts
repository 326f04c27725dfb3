import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Number of slices between two collections. The objects of 4 slices take about a millisecond to copy. */
const SLICES = 4;

type Collect = (options: { readonly type: 'minor' }) => void;

/**
 * Returns V8's garbage collection function, which V8 exposes only while a process-wide flag is set. The flag is cleared
 * at once. Undefined if V8 has no such function: V8 then collects on its own, with longer pauses.
 */
function exposeCollector(): Collect | undefined {
  setFlagsFromString('--expose-gc');
  const gc: unknown = runInNewContext('typeof gc === "function" ? gc : undefined');
  setFlagsFromString('--no-expose-gc');
  return typeof gc === 'function' ? (gc as Collect) : undefined;
}

/** Set once, when the first policy is built. */
let exposed: { readonly collect: Collect | undefined } | undefined;

/**
 * Collects young objects while a large policy is built. Nearly all new objects survive, so each collection copies them.
 * V8 would wait until there are 16 MB of them and then pause for more than 10 ms. Frequent small collections take no
 * more time in total (bench: policy-load).
 */
export class MinorCollector {
  private readonly collect: Collect | undefined;
  private slices = 0;

  constructor() {
    exposed ??= { collect: exposeCollector() };
    this.collect = exposed.collect;
  }

  /** Whether V8 exposes the function. */
  get works(): boolean {
    return this.collect !== undefined;
  }

  /** Call after each slice. */
  slice(): void {
    if (++this.slices % SLICES === 0) this.collect?.({ type: 'minor' });
  }
}
