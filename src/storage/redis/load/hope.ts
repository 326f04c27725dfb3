import { StallTolerantTimer } from '../../../runtime/stall-tolerant-timer.js';

/** Whether a Redis may be up in a moment, for as long as calls are let wait for that. */
export class Hope {
  readonly #onTimeout: () => void;
  /** Undefined while there is none. */
  #living: { readonly timer: StallTolerantTimer; readonly waiting: (() => void)[] } | undefined;

  /** `onTimeout` is to call {@link end}. */
  constructor(onTimeout: () => void) {
    this.#onTimeout = onTimeout;
  }

  get isAlive(): boolean {
    return this.#living !== undefined;
  }

  /** Begins, or begins anew, for so many milliseconds. */
  begin(forMs: number): void {
    this.#living?.timer.stop();
    const { waiting } = this.#living ?? { waiting: [] };
    this.#living = { timer: new StallTolerantTimer(forMs, this.#onTimeout), waiting };
  }

  /** Returns whether there was any. */
  end(): boolean {
    const living = this.#living;
    if (living === undefined) return false;
    this.#living = undefined;
    living.timer.stop();
    for (const resolve of living.waiting) resolve();
    return true;
  }

  /** Resolves once there is none, at once where that is so. */
  async ended(): Promise<void> {
    const living = this.#living;
    if (living !== undefined) await new Promise<void>((resolve) => living.waiting.push(resolve));
  }
}
