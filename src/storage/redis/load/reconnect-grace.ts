import { StallTolerantTimer } from '../../../runtime/stall-tolerant-timer.js';

/** Whether a Redis may be up in a moment, for as long as calls are let wait for that. */
export class ReconnectGrace {
  readonly #onTimeout: () => void;
  /** Undefined while there is none. */
  #active: { readonly timer: StallTolerantTimer; readonly waiting: (() => void)[] } | undefined;

  /** `onTimeout` is to call {@link end}. */
  constructor(onTimeout: () => void) {
    this.#onTimeout = onTimeout;
  }

  get isActive(): boolean {
    return this.#active !== undefined;
  }

  /** Begins, or begins anew, for so many milliseconds. */
  start(forMs: number): void {
    this.#active?.timer.stop();
    const { waiting } = this.#active ?? { waiting: [] };
    this.#active = { timer: new StallTolerantTimer(forMs, this.#onTimeout), waiting };
  }

  /** Returns whether there was any. */
  end(): boolean {
    const living = this.#active;
    if (living === undefined) return false;
    this.#active = undefined;
    living.timer.stop();
    for (const resolve of living.waiting) resolve();
    return true;
  }

  /** Resolves once there is none, at once where that is so. */
  async whenEnded(): Promise<void> {
    const living = this.#active;
    if (living !== undefined) await new Promise<void>((resolve) => living.waiting.push(resolve));
  }
}
