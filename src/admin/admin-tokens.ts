import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** Maximum number of tokens in a file, and maximum bytes of the file. Each call is compared to all tokens. */
export const MAX_TOKENS = 100;
export const MAX_TOKENS_BYTES = 64 * 1024;
/** Minimum and maximum number of characters of a token. Shorter tokens could be guessed from their digests. */
export const MIN_TOKEN_LENGTH = 32;
export const MAX_TOKEN_LENGTH = 256;

const NAME = /^[\w.@-]{1,64}$/;
const DIGEST = /^sha256:([\da-f]{64})$/i;
const TOKEN_BYTES = 32;
/** Name of callers without a token, which no token may have. */
const RESERVED_NAME = 'loopback';

/** A token of ADMIN_TOKENS_FILE. The file does not contain the token itself. */
export interface AdminToken {
  readonly name: string;
  readonly right: 'read' | 'write';
  /** SHA-256 of the token. */
  readonly digest: Buffer;
}

/** A new token, with its line for ADMIN_TOKENS_FILE. */
export interface NewAdminToken {
  readonly token: string;
  readonly line: string;
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** Returns the error in the name of a token, as the end of a sentence, or undefined for a valid name. */
export function tokenNameFault(name: string): string | undefined {
  if (name === RESERVED_NAME)
    return `"${RESERVED_NAME}" is reserved for callers without a token; choose another name`;
  if (NAME.test(name)) return undefined;
  return (
    `${JSON.stringify(name.slice(0, 80))} is not a valid name; use 1 to 64 characters: letters, digits ` +
    'and . _ - @'
  );
}

/** Creates a token of 256 random bits. `name` must be valid; see {@link tokenNameFault}. */
export function newAdminToken(name: string, right: AdminToken['right']): NewAdminToken {
  const token = `weir_${randomBytes(TOKEN_BYTES).toString('base64url')}`;
  return { token, line: `${name} ${right} sha256:${digestOf(token).toString('hex')}` };
}

/**
 * Parses the text of ADMIN_TOKENS_FILE, which has one token per line: `name right sha256:<64 hex digits>`. Empty lines
 * and lines that start with # are ignored. Returns the error as a string, which starts with a line number if possible.
 * The error never quotes a digest, because the file may contain the token there by mistake.
 */
export function readAdminTokens(text: string): readonly AdminToken[] | string {
  if (Buffer.byteLength(text) > MAX_TOKENS_BYTES)
    return `: the file has more than ${MAX_TOKENS_BYTES} bytes; remove some lines`;
  // Programs that write the file in place truncate it first.
  if (text.trim() === '')
    return ': the file is empty; write one line for each token or, to allow no tokens, write only a comment';
  const tokens: AdminToken[] = [];
  const places: number[] = [];
  for (const [at, line] of text
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
    .entries()) {
    const trimmed = line.trim();
    if (trimmed === '' || trimmed.startsWith('#')) continue;
    const place = at + 1;
    const token = readToken(trimmed);
    if (typeof token === 'string') return `:${place}: ${token}`;
    if (tokens.length === MAX_TOKENS)
      return `:${place}: the file has more than ${MAX_TOKENS} tokens; remove some lines`;
    const same = tokens.findIndex(({ name, digest }) => name === token.name || digest.equals(token.digest));
    if (same !== -1) {
      const what = tokens[same]?.name === token.name ? `the name ${token.name}` : 'the same token';
      return `:${place}: ${what} is already on line ${places[same]}; remove one of the two lines`;
    }
    tokens.push(token);
    places.push(place);
  }
  return tokens;
}

const FORM =
  'each line must be "<name> read|write sha256:<64 hex digits>", as printed by `weir bucket new-token`';

function readToken(line: string): AdminToken | string {
  const [name = '', right, third = '', ...more] = line.split(/[\t ]+/);
  if (third === '' || more.length > 0) return `the line does not have three words; ${FORM}`;
  const fault = tokenNameFault(name);
  if (fault !== undefined) return fault;
  if (right !== 'read' && right !== 'write') return `the second word is neither read nor write; ${FORM}`;
  const digest = DIGEST.exec(third)?.[1];
  if (digest === undefined) return `the third word is not "sha256:" followed by 64 hex digits; ${FORM}`;
  return { name, right, digest: Buffer.from(digest, 'hex') };
}

/**
 * Returns the token that was sent, or undefined if it is unknown. The duration does not depend on the token or on the
 * number of correct characters.
 */
export function findAdminToken(tokens: readonly AdminToken[], sent: string): AdminToken | undefined {
  const digest = digestOf(sent);
  let found: AdminToken | undefined;
  for (const token of tokens) {
    if (timingSafeEqual(token.digest, digest)) found = token;
  }
  return found;
}
