export interface BackOffOptions {
  readonly initialMs: number;
  readonly maxMs: number;
  /** No pause is shorter, milliseconds; default 0. */
  readonly minMs?: number;
  /** How much of a pause chance may add or take, 0 to 1; default 0: none. */
  readonly jitterFactor?: number;
  /** A number in [0, 1); Math.random when absent. */
  readonly random?: () => number;
}

/** Growing pauses between attempts: each twice the one before, never above `maxMs`. */
export class BackOff {
  readonly #options: BackOffOptions;
  /** Pauses since the last {@link reset}, as far as they made the next one longer. */
  #pauses = 0;

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  /** Milliseconds to wait before the next attempt. */
  next(): number {
    const { initialMs, maxMs, minMs = 0, jitterFactor = 0, random = Math.random } = this.#options;
    const middle = Math.min(Math.max(initialMs, minMs) * 2 ** this.#pauses, maxMs);
    if (middle < maxMs) this.#pauses++;
    if (jitterFactor === 0) return Math.max(middle, minMs);
    const low = middle * (1 - jitterFactor);
    const high = Math.min(middle * (1 + jitterFactor), maxMs);
    return Math.max(Math.round(low + random() * (high - low)), minMs);
  }

  /** Something went well: the next pause is the first one again. */
  reset(): void {
    this.#pauses = 0;
  }
}
