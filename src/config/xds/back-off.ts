export interface BackOffOptions {
  readonly initialMs: number;
  readonly maxMs: number;
  /** How much of a pause chance may add or take, 0 to 1. 0: none. */
  readonly randomFactor: number;
  /** A number in [0, 1). */
  readonly random: () => number;
}

/**
 * No setting makes a client knock more often, in milliseconds: what refuses a connection refuses the next at once, too.
 */
export const LEAST_PAUSE_MS = 100;

/** Growing pauses between attempts: each twice the one before, never above `maxMs`. */
export class BackOff {
  readonly #options: BackOffOptions;
  #pauses = 0;

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  /** Milliseconds to wait before the next attempt. */
  next(): number {
    const { initialMs, maxMs, randomFactor, random } = this.#options;
    const middle = Math.min(Math.max(initialMs, LEAST_PAUSE_MS) * 2 ** this.#pauses, maxMs);
    if (middle < maxMs) this.#pauses++;
    const low = middle * (1 - randomFactor);
    const high = Math.min(middle * (1 + randomFactor), maxMs);
    return Math.max(Math.round(low + random() * (high - low)), LEAST_PAUSE_MS);
  }

  /** Something went well: the next pause is the first one again. */
  reset(): void {
    this.#pauses = 0;
  }
}
