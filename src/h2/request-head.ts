import type { HeaderList } from './hpack/header-field.js';
import type { RequestHead } from './request-handler.js';

/** A request head with the values that the engine itself needs. */
export class CheckedHead implements RequestHead {
  readonly method: string;
  readonly scheme: string;
  readonly path: string;
  readonly authority: string | undefined;
  readonly fields: readonly string[];
  /** Body length that `content-length` announces, in bytes, or -1 if it is absent. */
  readonly contentLength: number;

  constructor(pseudo: PseudoFields, fields: readonly string[], contentLength: number) {
    this.method = pseudo.method ?? '';
    this.scheme = pseudo.scheme ?? '';
    this.path = pseudo.path ?? '';
    this.authority = pseudo.authority;
    this.fields = fields;
    this.contentLength = contentLength;
  }
}

/** A header list that is not a valid request: malformed (RFC 9113 section 8.1.1). */
export class MalformedHead {
  /** Description of the error. Never contains values that the peer sent. */
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}

interface PseudoFields {
  method: string | undefined;
  scheme: string | undefined;
  path: string | undefined;
  authority: string | undefined;
}

/**
 * Returns the request head of a header list, validated by RFC 9113 section 8. The result is computed once for each list
 * and cached in `derived`. Fields that equal those at the same position in `previous`, an earlier head of the
 * connection, are not validated again, because the requests of a peer differ only in a few fields.
 */
export function requestHead(
  list: HeaderList,
  previous: CheckedHead | undefined,
): CheckedHead | MalformedHead {
  const known = list.derived;
  if (known instanceof CheckedHead || known instanceof MalformedHead) return known;
  const head = checkRequest(list.fields, previous);
  list.derived = head;
  return head;
}

/**
 * Validates a trailer section: it must not contain pseudo-header fields (RFC 9113 section 8.1), and each field must be
 * valid. Returns a description of the error, or undefined.
 */
export function checkTrailers(list: HeaderList): string | undefined {
  const { fields } = list;
  for (let at = 0; at < fields.length; at += 2) {
    const problem = checkField(fields[at] as string, fields[at + 1] as string);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function checkRequest(
  fields: readonly string[],
  previous: CheckedHead | undefined,
): CheckedHead | MalformedHead {
  const pseudo: PseudoFields = {
    method: undefined,
    scheme: undefined,
    path: undefined,
    authority: undefined,
  };
  let at = 0;
  // RFC 9113 section 8.3: "All pseudo-header fields MUST appear in a field block before all regular field lines."
  while (at < fields.length && (fields[at] as string).charCodeAt(0) === COLON) {
    const problem = setPseudoField(pseudo, fields[at] as string, fields[at + 1] as string);
    if (problem !== undefined) return new MalformedHead(problem);
    at += 2;
  }
  const problem = checkPseudoFields(pseudo, previous);
  if (problem !== undefined) return new MalformedHead(problem);
  const regular = fields.slice(at);
  const known = previous === undefined ? NO_FIELDS : previous.fields;
  let contentLength = -1;
  for (at = 0; at < regular.length; at += 2) {
    const name = regular[at] as string;
    const value = regular[at + 1] as string;
    if (at >= known.length || name !== known[at] || value !== known[at + 1]) {
      const problem = checkField(name, value);
      if (problem !== undefined) return new MalformedHead(problem);
    }
    if (name === 'content-length') {
      const length = parseContentLength(value);
      if (length < 0 || (contentLength >= 0 && contentLength !== length)) {
        return new MalformedHead('content-length is not a single number');
      }
      contentLength = length;
    }
  }
  return new CheckedHead(pseudo, regular, contentLength);
}

/** Returns the value of content-length (RFC 9110 section 8.6), or -1 if it is invalid or has more than 15 digits. */
function parseContentLength(value: string): number {
  if (value.length === 0 || value.length > 15) return -1;
  let length = 0;
  for (let at = 0; at < value.length; at++) {
    const digit = value.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return -1;
    length = 10 * length + digit;
  }
  return length;
}

function setPseudoField(pseudo: PseudoFields, name: string, value: string): string | undefined {
  switch (name) {
    case ':method':
      if (pseudo.method !== undefined) return ':method appears twice';
      pseudo.method = value;
      return undefined;
    case ':scheme':
      if (pseudo.scheme !== undefined) return ':scheme appears twice';
      pseudo.scheme = value;
      return undefined;
    case ':path':
      if (pseudo.path !== undefined) return ':path appears twice';
      pseudo.path = value;
      return undefined;
    case ':authority':
      if (pseudo.authority !== undefined) return ':authority appears twice';
      pseudo.authority = value;
      return undefined;
    default:
      return 'a pseudo-header field is not defined for requests';
  }
}

function checkPseudoFields(pseudo: PseudoFields, previous: CheckedHead | undefined): string | undefined {
  const { method, scheme, path, authority } = pseudo;
  // The head of a CONNECT request stores '' for absent fields, so an empty path cannot be compared.
  if (previous !== undefined && path !== '' && path === previous.path && method === previous.method) {
    if (scheme === previous.scheme && authority === previous.authority) return undefined;
  }
  if (method === undefined || !isToken(method)) return ':method is missing or is not a token';
  if (authority !== undefined && !isFieldValue(authority)) return ':authority contains invalid octets';
  if (method === 'CONNECT') {
    // RFC 9113 section 8.5: ":scheme" and ":path" MUST be omitted, and ":authority" names host and port.
    if (scheme !== undefined || path !== undefined) return 'CONNECT has :scheme or :path';
    return authority === undefined || authority === '' ? 'CONNECT has no :authority' : undefined;
  }
  if (scheme === undefined || scheme === '' || !isFieldValue(scheme))
    return ':scheme is missing or contains invalid octets';
  if (path === undefined || path === '' || !isFieldValue(path))
    return ':path is missing or contains invalid octets';
  // RFC 9113 section 8.3.1: for http and https, the path starts with "/", or is "*" for OPTIONS.
  if (scheme !== 'http' && scheme !== 'https') return undefined;
  if (path.charCodeAt(0) === SLASH || (path === '*' && method === 'OPTIONS')) return undefined;
  return ':path does not start with a slash';
}

function checkField(name: string, value: string): string | undefined {
  if (!isFieldName(name)) {
    return name.charCodeAt(0) === COLON
      ? 'a pseudo-header field is not allowed at this position'
      : 'a field name contains invalid octets or capital letters';
  }
  if (!isFieldValue(value)) return 'a field value contains invalid octets';
  switch (name) {
    // RFC 9113 section 8.2.2: connection-specific fields are not allowed.
    case 'connection':
    case 'proxy-connection':
    case 'keep-alive':
    case 'transfer-encoding':
    case 'upgrade':
      return 'connection-specific header fields are not allowed in HTTP/2';
    case 'te':
      return value === 'trailers' ? undefined : 'the te header field has a value other than "trailers"';
    default:
      return undefined;
  }
}

const NO_FIELDS: readonly string[] = [];
const COLON = 0x3a;
const SLASH = 0x2f;
const SPACE = 0x20;
const TAB = 0x09;

/**
 * By octet: 1 for token characters (RFC 9110 section 5.6.2) that are allowed in lowercase names, 2 for capital letters.
 */
const TOKEN = new Uint8Array(256);
for (const character of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")
  TOKEN[character.charCodeAt(0)] = 1;
for (let octet = 0x41; octet <= 0x5a; octet++) TOKEN[octet] = 2;

/** RFC 9113 section 8.2: "Field names MUST be converted to lowercase". RFC 9110 allows token characters only. */
function isFieldName(name: string): boolean {
  for (let at = 0; at < name.length; at++) {
    if (TOKEN[name.charCodeAt(at)] !== 1) return false;
  }
  return name.length > 0;
}

function isToken(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    if (TOKEN[text.charCodeAt(at)] === 0) return false;
  }
  return text.length > 0;
}

/** RFC 9113 section 8.2.1: no NUL, CR or LF, and no space or tab at either end. */
function isFieldValue(value: string): boolean {
  const { length } = value;
  if (length === 0) return true;
  for (let at = 0; at < length; at++) {
    const octet = value.charCodeAt(at);
    if (octet < 0x0e && (octet === 0 || octet === 0x0a || octet === 0x0d)) return false;
  }
  const first = value.charCodeAt(0);
  const last = value.charCodeAt(length - 1);
  return first !== SPACE && first !== TAB && last !== SPACE && last !== TAB;
}
