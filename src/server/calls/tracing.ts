import type { RateLimitResponse } from '../../codec/messages.js';
import type { RequestTrace } from '../../service/record/request-trace.js';
import type { Refusal } from '../../service/refusal.js';

/** A response, encoded or decoded. */
export type Answer = Uint8Array | RateLimitResponse;

/** Outcome of a call: a response, a refusal, or an unexpected error. */
export type CallOutcome = Answer | Refusal | Error;

/** The trace of one call. The owner must call `ended`. */
export interface CallTrace extends RequestTrace {
  ended(outcome: CallOutcome): void;
}

/**
 * Number of lost spans: `queue` if too many waited for the collector, `export` if the collector did not accept them.
 */
export interface SpanLosses {
  readonly queue: number;
  readonly export: number;
}

export const NO_SPAN_LOSSES: SpanLosses = { queue: 0, export: 0 };
