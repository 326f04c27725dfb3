export interface BackOffOptions {
  readonly firstMs: number;
  readonly longestMs: number;
  /** No pause is shorter, milliseconds; default 0. */
  readonly leastMs?: number;
  /** How much of a pause chance may add or take, 0 to 1; default 0: none. */
  readonly randomFactor?: number;
  /** A number in [0, 1); Math.random when absent. */
  readonly random?: () => number;
}

/** Growing pauses between attempts: each twice the one before, never above `longestMs`. */
export class BackOff {
  readonly #options: BackOffOptions;
  /** Pauses since the last {@link reset}, as far as they made the next one longer. */
  #pauses = 0;

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  /** Milliseconds to wait before the next attempt. */
  next(): number {
    const { firstMs, longestMs, leastMs = 0, randomFactor = 0, random = Math.random } = this.#options;
    const middle = Math.min(Math.max(firstMs, leastMs) * 2 ** this.#pauses, longestMs);
    if (middle < longestMs) this.#pauses++;
    if (randomFactor === 0) return Math.max(middle, leastMs);
    const low = middle * (1 - randomFactor);
    const high = Math.min(middle * (1 + randomFactor), longestMs);
    return Math.max(Math.round(low + random() * (high - low)), leastMs);
  }

  /** Something went well: the next pause is the first one again. */
  reset(): void {
    this.#pauses = 0;
  }
}
