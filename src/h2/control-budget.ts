import { Budget } from './budget.js';
import { ERROR_CODE } from './error-code.js';
import { ConnectionFailure } from './failure.js';
import type { H2Limits } from './limits.js';

const TOO_MANY = new ConnectionFailure(
  ERROR_CODE.ENHANCE_YOUR_CALM,
  'the peer sends too many frames that bring no request',
);

/** Control frames that a complete request earns the peer: a PING and WINDOW_UPDATEs, and one to spare. */
export const CONTROL_FRAMES_PER_REQUEST = 4;
/**
 * Control frames that a message of ours earns the peer: it may answer each with WINDOW_UPDATE for the stream and the
 * connection.
 */
export const CONTROL_FRAMES_PER_MESSAGE = 2;

/** Bounds frames that cost us work and bring no request; see {@link H2Limits.controlBurst}. */
export class ControlBudget {
  /** Frames that requests and answers have earned since the last {@link charge}. */
  earned = 0;
  readonly #budget: Budget;

  constructor(limits: H2Limits, nowMs: number) {
    this.#budget = new Budget(limits.controlBurst, limits.controlRefillPerSecond, nowMs);
  }

  /** Counts a frame. */
  charge(nowMs: number): ConnectionFailure | undefined {
    if (this.earned > 0) {
      this.#budget.refund(this.earned);
      this.earned = 0;
    }
    return this.#budget.take(nowMs) ? undefined : TOO_MANY;
  }
}
