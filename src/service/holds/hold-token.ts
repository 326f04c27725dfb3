import type { Settlement } from '../../limiter/holds/hold.js';
import { divideKey } from '../../policy/names/bucket-key.js';

/**
 * A hold in a token. The token names the bucket to settle, and repeats the values that the store has, so that the
 * store need not keep the name of the bucket for each hold. No value is trusted: a store settles only a hold with all
 * of these values, whose id has 96 random bits.
 */
export interface TokenHold extends Settlement {
  /** Name and tag of the bucket; see TakeItem. */
  readonly key: string;
  readonly tagLength: number;
  /** The end of its name; see `Rule.bucketSuffix`. */
  readonly suffix: string;
  /** Digest of the rule that placed it; see `HeldRule`. */
  readonly rule: string;
  /** Whether the local buckets of a process hold it, because the store was unavailable. */
  readonly isLocal: boolean;
  /** Whether its hits are given back if the use is unknown. A reload does not change this for existing holds. */
  readonly freesUnknown: boolean;
}

const LOCAL_FLAG = 1;
const FREE_FLAG = 2;
/** The name of the bucket is in base64url. */
const ENCODED_FLAG = 4;

/** A hold, see {@link encodeToken}. */
const HOLD =
  /([0-7])([\da-f]{24})([\da-z]{7})(0|[1-9]\d{0,9})\.(0|[1-9]\d{0,9})\.(0|[1-9]\d{0,15})\.([\w:.~%@/#!&^*-]+)(?:,(?=.)|$)/y;
/** Names with other characters are encoded, so that a token needs no quotes in JSON, headers and commands. */
const PLAIN_NAME = /^[\w:.~%@/#!&^*-]*$/;
const MAX_UINT32 = 0xffff_ffff;

/**
 * Maximum length of the tokens of a request that are decoded. The names of a thousand buckets of a usual policy fit.
 */
export const MAX_TOKEN_CHARACTERS = 262_144;
/** Length of tokens whose parts are copied, because ends of holds may wait for the store for a long time. */
const LONG_TOKEN = 1024;

/**
 * Encodes the holds of one request, separated by commas. A hold is a digit with its flags, its id, the digest of its
 * rule, and separated by dots its hits, its lifetime, `fullMicros` and the name of its bucket.
 */
export function encodeToken(holds: readonly TokenHold[]): string {
  let token = '';
  for (const hold of holds) token = token === '' ? encodeHold(hold) : `${token},${encodeHold(hold)}`;
  return token;
}

function encodeHold(hold: TokenHold): string {
  const { key, id, rule, isLocal, freesUnknown } = hold;
  const isPlain = PLAIN_NAME.test(key);
  const flags = (isLocal ? LOCAL_FLAG : 0) + (freesUnknown ? FREE_FLAG : 0) + (isPlain ? 0 : ENCODED_FLAG);
  const name = isPlain ? key : Buffer.from(key).toString('base64url');
  // V8 concatenates short strings faster than long ones.
  const values = `${hold.amount}.${hold.lifetimeMillis}.${hold.fullMicros}.`;
  return `${flags}${id}${rule}${values}${name}`;
}

/**
 * Yields the holds of a token. Yields undefined, and ends, if the text or the rest of it is not a token of weir. Long
 * tokens are decoded in slices.
 */
export function* decodeToken(token: string): Generator<TokenHold | undefined, void> {
  let at = 0;
  do {
    HOLD.lastIndex = at;
    const found = token.length > MAX_TOKEN_CHARACTERS ? null : HOLD.exec(token);
    at = HOLD.lastIndex;
    const hold =
      found === null ? undefined : decodeHold(token.length > LONG_TOKEN ? found.map(copyOf) : found);
    yield hold;
    if (hold === undefined) return;
  } while (at < token.length);
}

/** Returns the hold of a token that has only one, as most tokens do; undefined for other texts. */
export function decodeOnly(token: string): TokenHold | undefined {
  if (token.length > LONG_TOKEN) return undefined;
  HOLD.lastIndex = 0;
  const found = HOLD.exec(token);
  return found === null || HOLD.lastIndex < token.length ? undefined : decodeHold(found);
}

/** Returns a copy of a part of a token, which does not keep the rest in memory. */
function copyOf(part: string): string {
  return Buffer.from(part, 'latin1').toString('latin1');
}

function decodeHold(found: readonly string[]): TokenHold | undefined {
  const flags = Number(found[1]);
  const amount = Number(found[4]);
  const lifetimeMillis = Number(found[5]);
  const fullMicros = Number(found[6]);
  const name = found[7] as string;
  const key = (flags & ENCODED_FLAG) === 0 ? name : Buffer.from(name, 'base64url').toString();
  const parts = divideKey(key);
  if (parts === undefined || amount > MAX_UINT32 || lifetimeMillis > MAX_UINT32) return undefined;
  if (fullMicros > Number.MAX_SAFE_INTEGER) return undefined;
  return {
    key,
    tagLength: parts.tagLength,
    suffix: parts.suffix,
    rule: found[3] as string,
    id: found[2] as string,
    amount,
    lifetimeMillis,
    fullMicros,
    isLocal: (flags & LOCAL_FLAG) !== 0,
    freesUnknown: (flags & FREE_FLAG) !== 0,
  };
}
