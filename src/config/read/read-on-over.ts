import type { AddedHeader, OnOver } from '../../policy/rule.js';
import { shownStart } from '../../runtime/shown-address.js';
import type { FieldReader } from './field-reader.js';
import { readMapping } from './field-values.js';
import { MAX_HEADER_LENGTH, MAX_HEADERS } from './policy-fields.js';
import type { RateDefaults } from './rates/rate-fields.js';
import { TOKEN } from './read-response.js';

/** A field name, RFC 9110 section 5.1. */
const HEADER_NAME = new RegExp(`^${TOKEN}$`);
const MAX_NAME_LENGTH = 128;
/** A field value, RFC 9110 section 5.5, in ASCII and without white space at its ends. */
const HEADER_VALUE = /^[!-~](?:[ -~]*[!-~])?$/;
/** Headers with a meaning for Envoy, weir, or the way in which the upstream reads the request. */
const RESERVED_HEADER =
  /^(?:authorization|connection|content-[a-z-]+|cookie|expect|forwarded|host|keep-alive|proxy-[a-z-]+|ratelimit.*|retry-after|te|trailer|transfer-encoding|upgrade|x-envoy-.*|x-forwarded-.*|x-ratelimit-.*)$/;

/** Reads `on_over` of a limit. */
export function readOnOver(onOver: FieldReader): OnOver {
  const { allow, request_headers: headers = [], metadata } = readMapping(onOver, 'on_over');
  if (allow === false) {
    onOver.error(
      'allow',
      '"allow" is false, but a limit that denies has no request to mark; write allow: true',
    );
  }
  return { requestHeaders: readHeaders(headers), metadata };
}

/** Warns about a `denied_response` of a soft limit, unless a plan may block customers. */
export function warnOfUnusedResponse(reader: FieldReader, { hasCustomer, plans }: RateDefaults): void {
  if (reader.field('denied_response') === undefined || (hasCustomer && plans?.mayBlock === true)) return;
  const why = !hasCustomer
    ? 'a limit with "on_over" never denies'
    : 'a limit with "on_over" denies only for plans with "blocked: true", and no plan has "blocked"';
  reader.warn('denied_response', `"denied_response" is ignored, because ${why}; remove it`);
}

function readHeaders(items: readonly FieldReader[]): readonly AddedHeader[] {
  const headers: AddedHeader[] = [];
  for (const item of items) {
    const keys = [...item.map.fields.keys()];
    if (keys.length === 0 || (keys.includes('key') && keys.includes('value'))) {
      item.problems.error(
        item.map.at,
        item.path,
        'write the name and the value of the header, as in { x-weir-over: burst }',
      );
      continue;
    }
    for (const key of keys) {
      const value = item.field(key) === undefined ? '' : item.text(key);
      if (value === undefined) continue;
      const problem = headerProblem(key.toLowerCase(), value, headers);
      if (problem === undefined) headers.push({ key: key.toLowerCase(), value });
      else item.error(key, problem);
    }
  }
  return headers;
}

/** Returns what is wrong with a header; undefined if nothing is. */
function headerProblem(key: string, value: string, before: readonly AddedHeader[]): string | undefined {
  const shown = JSON.stringify(shownStart(key));
  if (!HEADER_NAME.test(key) || key.length > MAX_NAME_LENGTH)
    return `${shown} is not a valid header name; write a name, such as x-weir-over`;
  if (RESERVED_HEADER.test(key))
    return `${shown} already has a meaning; write another name, such as x-weir-over`;
  if (before.some((other) => other.key === key)) return `${shown} is set twice; remove one of the two`;
  if (!HEADER_VALUE.test(value) || value.length > MAX_HEADER_LENGTH)
    return `the value of ${shown} must have 1 to ${MAX_HEADER_LENGTH} visible ASCII characters; change the value`;
  return before.length === MAX_HEADERS
    ? `a limit can add at most ${MAX_HEADERS} headers; remove this one`
    : undefined;
}
