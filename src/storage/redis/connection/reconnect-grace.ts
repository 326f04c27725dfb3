import { StallTolerantTimer } from '../../../runtime/stall-tolerant-timer.js';

/** The time during which calls wait because Redis may be up soon. */
export class ReconnectGrace {
  readonly #onTimeout: () => void;
  /** Undefined if no grace is active. */
  #active: { readonly timer: StallTolerantTimer; readonly waiting: (() => void)[] } | undefined;

  /** `onTimeout` must call {@link end}. */
  constructor(onTimeout: () => void) {
    this.#onTimeout = onTimeout;
  }

  get isActive(): boolean {
    return this.#active !== undefined;
  }

  /** Starts the grace, or restarts it, for `forMs`. */
  start(forMs: number): void {
    this.#active?.timer.stop();
    const { waiting } = this.#active ?? { waiting: [] };
    this.#active = { timer: new StallTolerantTimer(forMs, this.#onTimeout), waiting };
  }

  /** Ends the grace. Returns whether one was active. */
  end(): boolean {
    const active = this.#active;
    if (active === undefined) return false;
    this.#active = undefined;
    active.timer.stop();
    for (const resolve of active.waiting) resolve();
    return true;
  }

  /** Resolves when no grace is active. */
  async whenEnded(): Promise<void> {
    const active = this.#active;
    if (active !== undefined) await new Promise<void>((resolve) => active.waiting.push(resolve));
  }
}
