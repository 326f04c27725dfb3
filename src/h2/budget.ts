/**
 * A token bucket that limits how much work a peer can cause. The caller passes the time in milliseconds, on a clock
 * that never goes back. The bucket starts full with `burst` tokens and gains `perSecond` tokens a second, up to
 * `burst`.
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

  /** Takes one token. Returns false if the bucket is empty. */
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
