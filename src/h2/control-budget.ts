import { ConnectionFailure, ERROR_CODE } from './failure.js';
import type { H2Limits } from './limits.js';

const TOO_MANY = new ConnectionFailure(
  ERROR_CODE.ENHANCE_YOUR_CALM,
  'the peer sent too many frames that do not belong to a request',
);

/**
 * Number of control frames that a complete request allows the peer in addition: a PING, its WINDOW_UPDATEs, and one to
 * spare.
 */
export const CONTROL_FRAMES_PER_REQUEST = 4;
/**
 * Number of control frames that a message from us allows the peer in addition: one WINDOW_UPDATE each for the stream
 * and for the connection.
 */
export const CONTROL_FRAMES_PER_MESSAGE = 2;

/** Limits frames that cause work without carrying a request; see {@link H2Limits.controlBurst}. */
export class ControlBudget {
  /** Number of frames that requests and responses have allowed since the last {@link charge}. */
  earned = 0;
  readonly #budget: Budget;

  constructor(limits: H2Limits, nowMs: number) {
    this.#budget = new Budget(limits.controlBurst, limits.controlRefillPerSecond, nowMs);
  }

  /** Counts a frame. Returns a failure if the peer has sent too many. */
  charge(nowMs: number): ConnectionFailure | undefined {
    if (this.earned > 0) {
      this.#budget.refund(this.earned);
      this.earned = 0;
    }
    return this.#budget.take(nowMs) ? undefined : TOO_MANY;
  }
}

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
