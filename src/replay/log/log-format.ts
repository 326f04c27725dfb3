import { type FormatPart, type Operator, parseFormatString } from './format-string.js';

/** The values of one request, in the order of `Columns`. */
export type LineValues = (string | undefined)[];

/** The syntax of the lines of a log. Plain data, which can be sent to a thread. */
export interface LogFormat {
  /** As in messages: `Envoy's default format`. */
  readonly title: string;
  /** The operators whose values the lines contain. */
  readonly operators: ReadonlySet<Operator>;
  readonly syntax: LineSyntax;
}

export type LineSyntax =
  | { readonly kind: 'text'; readonly parts: readonly FormatPart[] }
  | { readonly kind: 'json'; readonly members: readonly JsonMember[] }
  /** weir's decision log. */
  | { readonly kind: 'decisions' }
  /** JSON lines with `time`, `domain` and `descriptors`. */
  | { readonly kind: 'descriptors' };

/** A member of a JSON line, and the operators of which its value is the first that exists. */
export interface JsonMember {
  /** Names from the outermost object to the member. */
  readonly path: readonly string[];
  readonly operators: readonly Operator[];
}

/** When the request started: `%START_TIME%`. */
export const START_TIME: Operator = 'START_TIME';
/** When weir decided the request, from its decision metadata. */
export const DECIDED_AT: Operator = 'DYNAMIC_METADATA(envoy.filters.http.ratelimit:decision:decided_at)';
export const REQUEST_ID: Operator = 'REQ(x-request-id)';
export const RESPONSE_FLAGS: Operator = 'RESPONSE_FLAGS';
/** Response flag of requests that the rate limit service denied. */
export const RATE_LIMITED = 'RL';
/** A call of the rate limit service, as readCall() reads it. */
export const WEIR_CALL: Operator = 'WEIR_CALL';
/** Share of the requests that the decision log contains. */
export const WEIR_SAMPLE: Operator = 'WEIR_SAMPLE';

/**
 * Returns a format of lines of text, such as `[%START_TIME%] "%REQ(:METHOD)% …`. The value of an operator ends where
 * the next text begins.
 */
export function textFormat(title: string, format: string): LogFormat {
  const parts = parseFormatString(format.replace(/\n$/, ''));
  const operators = new Set(parts.flatMap((part) => ('operators' in part ? part.operators : [])));
  return { title, operators, syntax: { kind: 'text', parts } };
}

/** Returns a format of JSON lines. */
export function jsonFormat(title: string, members: readonly JsonMember[]): LogFormat {
  const operators = new Set(members.flatMap((member) => member.operators));
  return { title, operators, syntax: { kind: 'json', members } };
}
