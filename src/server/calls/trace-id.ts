/** Looks up a header by its name in lower case. */
export type HeaderLookup = (name: string) => string | undefined;

/**
 * What `/json` and what hands its calls to worker processes pass on of a request's headers: what names the request, and
 * says which trace it belongs to.
 */
export const TRACE_HEADERS = [
  'x-request-id',
  'traceparent',
  'tracestate',
  'b3',
  'x-b3-traceid',
  'x-b3-spanid',
  'x-b3-parentspanid',
  'x-b3-sampled',
  'x-b3-flags',
  'baggage',
] as const;

/** Longest value of one of them that is looked at; W3C allows a `baggage` of so many bytes. */
export const MAX_TRACE_HEADER = 8192;

/** https://www.w3.org/TR/trace-context/, "traceparent"; versions to come may add fields. */
const TRACEPARENT = /^(?!ff)[\da-f]{2}-([\da-f]{32})-[\da-f]{16}-[\da-f]{2}(?:$|-)/;
/** https://github.com/openzipkin/b3-propagation, "Single Header" */
const B3 = /^([\da-f]{32}|[\da-f]{16})-[\da-f]{16}(?:$|-)/i;
const B3_TRACE_ID = /^(?:[\da-f]{32}|[\da-f]{16})$/i;
const NO_TRACE = '0'.repeat(32);

/**
 * The trace that a call belongs to, as 32 hexadecimal digits; '' where its headers name none. B3 is taken before W3C's
 * header, as envoyproxy/ratelimit does.
 */
export function traceIdOf(header: HeaderLookup): string {
  const b3 = B3.exec(header('b3') ?? '')?.[1] ?? B3_TRACE_ID.exec(header('x-b3-traceid') ?? '')?.[0];
  const padded = b3?.toLowerCase().padStart(32, '0') ?? NO_TRACE;
  if (padded !== NO_TRACE) return padded;
  const w3c = TRACEPARENT.exec(header('traceparent') ?? '')?.[1] ?? NO_TRACE;
  return w3c === NO_TRACE ? '' : w3c;
}

/** Header fields by name in lower case. */
export type CallHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Looks up headers in an object of them. */
export function headerLookup(headers: CallHeaders = {}): HeaderLookup {
  return (name) => {
    const value = headers[name];
    return value === undefined || typeof value === 'string' ? value : value.join(',');
  };
}

/** Those of {@link TRACE_HEADERS} that are there, to be handed to another process; absent: none is. */
export function traceHeaders(headers: CallHeaders = {}): Readonly<Record<string, string>> | undefined {
  const header = headerLookup(headers);
  let found: Record<string, string> | undefined;
  for (const name of TRACE_HEADERS) {
    const value = header(name);
    if (value === undefined || value.length > MAX_TRACE_HEADER) continue;
    found ??= {};
    found[name] = value;
  }
  return found;
}
