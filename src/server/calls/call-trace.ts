import type { RateLimitResponse } from '../../codec/messages.js';
import type { RequestTrace } from '../../service/record/request-trace.js';
import type { Refusal } from '../../service/refusal.js';

/** Looks up a header by its lowercase name. */
export type HeaderLookup = (name: string) => string | undefined;

/** Maximum length of a header value that is read. W3C Baggage allows 8,192 bytes. */
export const MAX_TRACE_HEADER = 8192;

/** https://www.w3.org/TR/trace-context/, "traceparent". Later versions may add fields. */
const TRACEPARENT = /^(?!ff)[\da-f]{2}-([\da-f]{32})-[\da-f]{16}-[\da-f]{2}(?:$|-)/;
/** https://github.com/openzipkin/b3-propagation, "Single Header" */
const B3 = /^([\da-f]{32}|[\da-f]{16})-[\da-f]{16}(?:$|-)/i;
const B3_TRACE_ID = /^(?:[\da-f]{32}|[\da-f]{16})$/i;
const NO_TRACE = '0'.repeat(32);

/**
 * Returns the trace ID of a call as 32 hexadecimal digits, or '' if its headers contain none. B3 headers take
 * precedence over `traceparent`, as in envoyproxy/ratelimit.
 */
export function traceIdOf(header: HeaderLookup): string {
  const b3 = B3.exec(header('b3') ?? '')?.[1] ?? B3_TRACE_ID.exec(header('x-b3-traceid') ?? '')?.[0];
  const padded = b3?.toLowerCase().padStart(32, '0') ?? NO_TRACE;
  if (padded !== NO_TRACE) return padded;
  const w3c = TRACEPARENT.exec(header('traceparent') ?? '')?.[1] ?? NO_TRACE;
  return w3c === NO_TRACE ? '' : w3c;
}

/** Header fields by lowercase name. */
export type CallHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

export function headerLookup(headers: CallHeaders = {}): HeaderLookup {
  return (name) => {
    const value = headers[name];
    return value === undefined || typeof value === 'string' ? value : value.join(',');
  };
}

/** Outcome of a call: a response, a refusal, or an unexpected error. */
export type CallOutcome = RateLimitResponse | Refusal | Error;

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
