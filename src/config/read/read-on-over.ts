import type { AddedHeader, OnOver } from '../../policy/rule.js';
import { shownStart } from '../../runtime/shown-address.js';
import type { FieldReader } from '../yaml/field-reader.js';
import { keysOf } from './policy-fields.js';
import type { RateDefaults } from './rates/rate-fields.js';
import { readMetadata } from './read-metadata.js';
import { TOKEN } from './read-response.js';

/** Maximum number of headers of a soft limit, and maximum length of a value. */
const MAX_HEADERS = 8;
const MAX_VALUE_LENGTH = 256;

/** A field name, RFC 9110 section 5.1. */
const HEADER_NAME = new RegExp(`^${TOKEN}$`);
const MAX_NAME_LENGTH = 128;
/** A field value, RFC 9110 section 5.5, in ASCII and without white space at its ends. */
const HEADER_VALUE = /^[!-~](?:[ -~]*[!-~])?$/;
/** Headers with a meaning for Envoy, weir, or the way in which the upstream reads the request. */
const RESERVED_HEADER =
  /^(?:authorization|connection|content-[a-z-]+|cookie|expect|forwarded|host|keep-alive|proxy-[a-z-]+|ratelimit.*|retry-after|te|trailer|transfer-encoding|upgrade|x-envoy-.*|x-forwarded-.*|x-ratelimit-.*)$/;

/** Reads `on_over` of a limit; undefined if absent or invalid, which is reported. */
export function readOnOver(reader: FieldReader): OnOver | undefined {
  const onOver = reader.mapping('on_over');
  if (onOver === undefined) {
    // Without this error, the limit would deny.
    if (reader.has('on_over') && reader.field('on_over') === undefined)
      reader.error('on_over', '"on_over" is empty; write { allow: true }, or remove "on_over"');
    return undefined;
  }
  onOver.expectKeys(keysOf('on_over'));
  if (onOver.boolean('allow') !== true) {
    onOver.error(
      'allow',
      '"on_over" needs "allow: true", because a limit that denies has no request to mark; add it, or remove "on_over"',
    );
  }
  return { requestHeaders: readHeaders(onOver), metadata: readMetadata(onOver) };
}

/** Warns about a `denied_response` of a soft limit, unless a plan may block customers. */
export function warnOfUnusedResponse(reader: FieldReader, { hasCustomer, plans }: RateDefaults): void {
  if (reader.field('denied_response') === undefined || (hasCustomer && plans?.mayBlock === true)) return;
  const why = !hasCustomer
    ? 'a limit with "on_over" never denies'
    : 'a limit with "on_over" denies only for plans with "blocked: true", and no plan has "blocked"';
  reader.warn('denied_response', `"denied_response" is ignored, because ${why}; remove it`);
}

function readHeaders(onOver: FieldReader): readonly AddedHeader[] {
  const headers: AddedHeader[] = [];
  for (const item of onOver.mappings('request_headers', 'mappings of a header to its value')) {
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
  if (!HEADER_VALUE.test(value) || value.length > MAX_VALUE_LENGTH)
    return `the value of ${shown} must have 1 to ${MAX_VALUE_LENGTH} visible ASCII characters; change the value`;
  return before.length === MAX_HEADERS
    ? `a limit can add at most ${MAX_HEADERS} headers; remove this one`
    : undefined;
}
