import type { RateLimitResponse } from '../../codec/messages.js';
import type { RequestTrace } from '../../service/record/request-trace.js';
import type { Refusal } from '../../service/refusal.js';
import type { HeaderLookup } from './trace-id.js';

/** An answer, encoded or not. */
export type Answer = Uint8Array | RateLimitResponse;

/** How a call ended: with an answer, refused, or by an error that nobody expects. */
export type CallOutcome = Answer | Refusal | Error;

/** The trace of a call, which must be told of its end. */
export interface CallTrace extends RequestTrace {
  ended(outcome: CallOutcome): void;
}

/** Where traces are recorded. */
export interface Tracing {
  /** A call begins. `peer` is asked for the caller's address as `host:port` if it is recorded; absent for `/json`. */
  begin(header: HeaderLookup, peer: (() => string) | undefined): CallTrace;
  /** Spans that were lost since the start, and why. */
  lost(): SpanLosses;
}

/** Spans that were lost: too many waited for the collector, or it did not take them. */
export interface SpanLosses {
  readonly queue: number;
  readonly export: number;
}

export const NO_SPAN_LOSSES: SpanLosses = { queue: 0, export: 0 };
