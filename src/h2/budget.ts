/**
 * A token bucket for what a peer may make us do. The clock is the caller's: milliseconds, any start, never backwards.
 * It starts full with `burst` and gains `perSecond` tokens a second, up to `burst`.
 */
export class Budget {
  #tokens: number;
  #filledMs: number;
  readonly #burst: number;
  readonly #perSecond: number;

  constructor(burst: number, perSecond: number, nowMs: number) {
    this.#tokens = burst;
    this.#filledMs = nowMs;
    this.#burst = burst;
    this.#perSecond = perSecond;
  }

  /** Takes one token; false when there is none. */
  take(nowMs: number): boolean {
    if (nowMs > this.#filledMs) {
      this.refund(((nowMs - this.#filledMs) * this.#perSecond) / 1000);
      this.#filledMs = nowMs;
    }
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  refund(tokens: number): void {
    this.#tokens = Math.min(this.#burst, this.#tokens + tokens);
  }
}
