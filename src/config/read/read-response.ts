import { MIN_SHARE, STORE_FAILURE_POLICIES, type StoreFailurePolicy } from '../../limiter/failure-policy.js';
import { nearest } from '../../nearest-name.js';
import { type DeniedResponse, HEADER_FAMILIES, type HeaderFamilies } from '../../policy/rule.js';
import { shownStart } from '../../runtime/shown-address.js';
import type { FieldReader } from '../yaml/field-reader.js';
import { keysOf } from './policy-fields.js';

/** Valid items of `response_headers`. */
export const RESPONSE_HEADER_FAMILIES: readonly string[] = Object.values(HEADER_FAMILIES);

/** Valid items of `request_headers`. A forwarded request needs no header with a retry time. */
export const REQUEST_HEADER_FAMILIES = RESPONSE_HEADER_FAMILIES.filter((family) => family !== 'retry-after');

const RETRY_AFTER_UPSTREAM =
  '"retry-after" is a header for denied callers, and denied requests do not reach the upstream; remove ' +
  'it here, and list it in "response_headers"';

const PROBLEM_JSON = 'problem+json';
/** Maximum length of a denial's body in bytes. Every denial contains it. */
const MAX_BODY_BYTES = 65_536;
const MAX_CONTENT_TYPE_LENGTH = 256;

/** A token, RFC 9110 section 5.6.2, such as the name of a header. */
export const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const QUOTED = '"(?:[\\t !#-\\[\\]-~]|\\\\[\\t -~])*"';
/**
 * A media type with parameters, RFC 9110 section 8.3.1. Only visible ASCII and spaces are valid, which prevents header
 * injection.
 */
const MEDIA_TYPE = new RegExp(`^${TOKEN}/${TOKEN}(?:[ \\t]*;[ \\t]*${TOKEN}=(?:${TOKEN}|${QUOTED}))*$`);

const SHARE = 'the share of the limit that each replica enforces, such as 0.25 for a quarter';

/** Reads `on_store_failure` of a file or a rule; undefined if absent or invalid, which is reported. */
export function readStoreFailure(reader: FieldReader): StoreFailurePolicy | undefined {
  const value = reader.field('on_store_failure')?.value;
  if (value?.kind === 'list') {
    reader.error(
      'on_store_failure',
      `"on_store_failure" must not be a list; write one of ${STORE_FAILURE_POLICIES.join(', ')}, or a ` +
        'local share, as in { local: 0.25 }',
    );
    return undefined;
  }
  if (value?.kind !== 'map') return reader.choice('on_store_failure', STORE_FAILURE_POLICIES);
  const mapping = reader.mapping('on_store_failure') as FieldReader;
  mapping.expectKeys(keysOf('local_share'));
  if (mapping.field('local') === undefined) {
    reader.error(
      'on_store_failure',
      `"on_store_failure" is a mapping without "local"; set "local" to ${SHARE}`,
    );
    return undefined;
  }
  const share = mapping.number('local', MIN_SHARE, 1, SHARE);
  if (share === undefined) return undefined;
  return share === 1 ? 'local' : { local: share };
}

/** Reads `response_headers` of a file or a rule; undefined if absent. Unknown families are reported. */
export function readResponseHeaders(reader: FieldReader): HeaderFamilies | undefined {
  return readFamilies(reader, 'response_headers', RESPONSE_HEADER_FAMILIES);
}

/** Reads `request_headers` in the same way. */
export function readRequestHeaders(reader: FieldReader): HeaderFamilies | undefined {
  return readFamilies(reader, 'request_headers', REQUEST_HEADER_FAMILIES);
}

function readFamilies(
  reader: FieldReader,
  key: 'response_headers' | 'request_headers',
  known: readonly string[],
): HeaderFamilies | undefined {
  if (reader.field(key) === undefined) return undefined;
  const families = reader.texts(key, 'header families');
  for (const { value, at, path } of families) {
    if (known.includes(value)) continue;
    if (value === 'retry-after') {
      reader.problems.error(at, path, RETRY_AFTER_UPSTREAM);
      continue;
    }
    const near = nearest(value, known);
    const remedy = near === undefined ? `write one of ${known.join(', ')}` : `did you mean "${near}"?`;
    const message = `"${shownStart(value)}" is not a valid header family; ${remedy}`;
    reader.problems.error(at, path, message);
  }
  const listed = new Set(families.map(({ value }) => value));
  const asked = Object.entries(HEADER_FAMILIES).map(([field, family]) => [field, listed.has(family)]);
  return Object.fromEntries(asked) as HeaderFamilies;
}

/** Reads `denied_response` of a file or a rule; undefined if absent or invalid, which is reported. */
export function readDeniedResponse(reader: FieldReader): DeniedResponse | undefined {
  const value = reader.field('denied_response')?.value;
  if (value === undefined) return undefined;
  if (value.kind === 'scalar' && value.text === PROBLEM_JSON) {
    return { preset: PROBLEM_JSON, body: '', contentType: 'application/problem+json' };
  }
  if (value.kind !== 'map') {
    reader.error(
      'denied_response',
      `"denied_response" must be ${PROBLEM_JSON} or a mapping, as in { body: "slow down" }`,
    );
    return undefined;
  }
  const mapping = reader.mapping('denied_response');
  return mapping === undefined ? undefined : readBody(mapping);
}

function readBody(reader: FieldReader): DeniedResponse | undefined {
  reader.expectKeys(keysOf('denied_response'));
  const body = reader.text('body');
  const contentType = reader.text('content_type') ?? '';
  if (reader.field('body') === undefined) {
    const message = '"body" is missing; write the text that denied callers receive, or "" for none';
    reader.problems.error(reader.map.at, reader.path, message);
  }
  if (body !== undefined && Buffer.byteLength(body) > MAX_BODY_BYTES) {
    reader.error('body', `the body is longer than ${MAX_BODY_BYTES} bytes; shorten it`);
    return undefined;
  }
  const isGood = contentType === '' || MEDIA_TYPE.test(contentType);
  if (!isGood || contentType.length > MAX_CONTENT_TYPE_LENGTH) {
    const shown = JSON.stringify(shownStart(contentType));
    reader.error('content_type', `${shown} is not a valid media type; write a media type, such as text/html`);
    return undefined;
  }
  return body === undefined ? undefined : { preset: 'none', body, contentType };
}
