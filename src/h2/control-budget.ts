import { Budget } from './budget.js';
import { ERROR_CODE } from './error-code.js';
import { ConnectionFailure } from './failure.js';
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
