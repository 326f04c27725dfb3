export interface BackOffOptions {
  readonly initialMs: number;
  readonly maxMs: number;
  /** Minimum pause in milliseconds; default 0. */
  readonly minMs?: number;
  /** Random jitter as a fraction of the pause, 0 to 1; default 0. */
  readonly jitterFactor?: number;
  /** Returns a number in [0, 1). Default: Math.random. */
  readonly random?: () => number;
}

/** Computes exponentially growing pauses between attempts: each is twice the previous one, up to `maxMs`. */
export class BackOff {
  readonly #options: BackOffOptions;
  /** Number of pauses since the last {@link reset} that have increased the next one. */
  #pauses = 0;

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  /** Returns the milliseconds to wait before the next attempt. */
  next(): number {
    const { initialMs, maxMs, minMs = 0, jitterFactor = 0, random = Math.random } = this.#options;
    const middle = Math.min(Math.max(initialMs, minMs) * 2 ** this.#pauses, maxMs);
    if (middle < maxMs) this.#pauses++;
    if (jitterFactor === 0) return Math.max(middle, minMs);
    const low = middle * (1 - jitterFactor);
    const high = Math.min(middle * (1 + jitterFactor), maxMs);
    return Math.max(Math.round(low + random() * (high - low)), minMs);
  }

  /** Resets the pauses after a success: the next pause is `initialMs` again. */
  reset(): void {
    this.#pauses = 0;
  }
}
