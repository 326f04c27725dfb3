import type { StoreFailurePolicy } from '../../limiter/failure-policy.js';
import { type DeniedResponse, HEADER_FAMILIES, type HeaderFamilies } from '../../policy/rule.js';
import { safePrefix } from '../../runtime/shown-address.js';
import type { FieldReader, Located } from './field-reader.js';
import { type FieldValues, readMapping } from './field-values.js';
import { type ANSWERS, MAX_BODY_BYTES } from './policy-fields.js';

/** A token, RFC 9110 section 5.6.2, such as the name of a header. */
export const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const QUOTED = '"(?:[\\t !#-\\[\\]-~]|\\\\[\\t -~])*"';
/**
 * A media type with parameters, RFC 9110 section 8.3.1. Only visible ASCII and spaces are valid, which prevents header
 * injection.
 */
const MEDIA_TYPE = new RegExp(`^${TOKEN}/${TOKEN}(?:[ \\t]*;[ \\t]*${TOKEN}=(?:${TOKEN}|${QUOTED}))*$`);

/** How a file or a limit answers; undefined settings come from the level above. */
export interface Answers {
  readonly onStoreFailure: StoreFailurePolicy | undefined;
  readonly responseHeaders: HeaderFamilies | undefined;
  readonly requestHeaders: HeaderFamilies | undefined;
  readonly deniedResponse: DeniedResponse | undefined;
}

/** Returns the settings of a file or a limit. Invalid ones are reported, and undefined. */
export function answersOf(values: FieldValues<typeof ANSWERS>): Answers {
  return {
    onStoreFailure: storeFailureOf(values.on_store_failure),
    responseHeaders: familiesOf(values.response_headers),
    requestHeaders: familiesOf(values.request_headers),
    deniedResponse: deniedOf(values.denied_response),
  };
}

function storeFailureOf(
  value: FieldValues<typeof ANSWERS>['on_store_failure'],
): StoreFailurePolicy | undefined {
  if (value === undefined || typeof value === 'string') return value;
  const { local } = readMapping(value, 'local_share');
  if (local === undefined) return undefined;
  return local === 1 ? 'local' : { local };
}

function familiesOf(families: readonly Located<string>[] | undefined): HeaderFamilies | undefined {
  if (families === undefined) return undefined;
  const listed = new Set(families.map(({ value }) => value));
  const asked = Object.entries(HEADER_FAMILIES).map(([field, family]) => [field, listed.has(family)]);
  return Object.fromEntries(asked) as HeaderFamilies;
}

function deniedOf(value: 'problem+json' | FieldReader | undefined): DeniedResponse | undefined {
  if (value === undefined) return undefined;
  if (value === 'problem+json') return { preset: value, body: '', contentType: 'application/problem+json' };
  const { body, content_type: contentType = '' } = readMapping(value, 'denied_response');
  if (body !== undefined && Buffer.byteLength(body) > MAX_BODY_BYTES) {
    value.error('body', `the body is longer than ${MAX_BODY_BYTES} bytes; shorten it`);
    return undefined;
  }
  if (contentType !== '' && !MEDIA_TYPE.test(contentType)) {
    const shown = JSON.stringify(safePrefix(contentType));
    value.error('content_type', `${shown} is not a valid media type; write a media type, such as text/html`);
    return undefined;
  }
  return body === undefined ? undefined : { preset: 'none', body, contentType };
}
