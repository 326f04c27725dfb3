import { TextParts } from '../../codec/text-parts.js';
import { HOLD_ID_DIGITS, type Settlement } from '../../limiter/holds/hold.js';
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
const ALL_FLAGS = LOCAL_FLAG | FREE_FLAG | ENCODED_FLAG;

/** Names with such characters are encoded, so that a token needs no quotes in JSON, headers and commands. */
const ENCODED_CHARACTER = /[^\w:.~%@/#!&^*-]/;
const MAX_UINT32 = 0xffff_ffff;
/** Number of digits of the digest of a rule: a number with 32 bits to base 36. */
export const DIGEST_DIGITS = 7;

/**
 * Maximum length of the tokens of a request that are decoded. The names of a thousand buckets of a usual policy fit.
 */
export const MAX_TOKEN_CHARACTERS = 262_144;
/** Length of tokens whose parts are copied, because ends of holds may wait for the store for a long time. */
const LONG_TOKEN = 1024;

/**
 * Encodes the holds of one request, separated by commas. A hold is a digit with its flags, its id, the digest of its
 * rule, and separated by dots its hits, its lifetime, `fullMicros` and the name of its bucket. In a token bucket,
 * `fullMicros` is followed by a hyphen and `costMicros`.
 */
export function encodeToken(holds: readonly TokenHold[]): TextParts {
  return new TextParts(holds.length === 1 ? partsOf(holds[0] as TokenHold) : holds.flatMap(partsAfterComma));
}

function partsAfterComma(hold: TokenHold, index: number): string[] {
  return index === 0 ? partsOf(hold) : [',', ...partsOf(hold)];
}

function partsOf(hold: TokenHold): string[] {
  const { key, id, rule, isLocal, freesUnknown } = hold;
  const isPlain = !ENCODED_CHARACTER.test(key);
  const flags = (isLocal ? LOCAL_FLAG : 0) + (freesUnknown ? FREE_FLAG : 0) + (isPlain ? 0 : ENCODED_FLAG);
  const name = isPlain ? key : Buffer.from(key).toString('base64url');
  const { amount, lifetimeMillis, fullMicros, costMicros = 0 } = hold;
  const times = costMicros > 0 ? `${fullMicros}-${costMicros}` : `${fullMicros}`;
  const values = `${amount}.${lifetimeMillis}.${times}.`;
  return [String(flags), id, rule, values, name];
}

/**
 * Yields the holds of a token. Yields undefined, and ends, if the text or the rest of it is not a token of weir. Long
 * tokens are decoded in slices.
 */
export function* decodeToken(token: string): Generator<TokenHold | undefined, void> {
  if (token.length > MAX_TOKEN_CHARACTERS) {
    yield undefined;
    return;
  }
  for (let at = 0; at >= 0; ) {
    const end = token.indexOf(',', at);
    const text = token.slice(at, end < 0 ? token.length : end);
    const hold = decodeHold(token.length > LONG_TOKEN ? copyOf(text) : text);
    yield hold;
    if (hold === undefined) return;
    at = end < 0 ? end : end + 1;
  }
}

/** Returns the hold of a token that has only one, as most tokens do; undefined for other texts. */
export function decodeOnly(token: string): TokenHold | undefined {
  return token.length > LONG_TOKEN || token.includes(',') ? undefined : decodeHold(token);
}

/** Returns a copy of a part of a token, which does not keep the rest in memory. */
function copyOf(part: string): string {
  return Buffer.from(part).toString();
}

const ID_AT = 1;
const RULE_AT = ID_AT + HOLD_ID_DIGITS;
const AMOUNT_AT = RULE_AT + DIGEST_DIGITS;

function decodeHold(text: string): TokenHold | undefined {
  const lifetimeAt = text.indexOf('.', AMOUNT_AT) + 1;
  const markAt = text.indexOf('.', lifetimeAt) + 1;
  const nameAt = text.indexOf('.', markAt) + 1;
  const flags = numberIn(text.slice(0, ID_AT), ALL_FLAGS);
  const amount = numberIn(text.slice(AMOUNT_AT, lifetimeAt - 1), MAX_UINT32);
  const lifetimeMillis = numberIn(text.slice(lifetimeAt, markAt - 1), MAX_UINT32);
  const times = text.slice(markAt, nameAt - 1);
  const hyphenAt = times.indexOf('-');
  const hasCost = hyphenAt >= 0;
  const fullMicros = numberIn(hasCost ? times.slice(0, hyphenAt) : times, Number.MAX_SAFE_INTEGER);
  const costMicros = hasCost ? numberIn(times.slice(hyphenAt + 1), Number.MAX_SAFE_INTEGER) : undefined;
  if (flags < 0 || amount < 0 || lifetimeMillis < 0 || fullMicros < 0 || !hasId(text)) return undefined;
  if (costMicros !== undefined && costMicros <= 0) return undefined;
  const name = text.slice(nameAt);
  const key = (flags & ENCODED_FLAG) === 0 ? name : Buffer.from(name, 'base64url').toString();
  const parts = divideKey(key);
  if (parts === undefined) return undefined;
  return {
    key,
    tagLength: parts.tagLength,
    suffix: parts.suffix,
    rule: text.slice(RULE_AT, AMOUNT_AT),
    id: text.slice(ID_AT, RULE_AT),
    amount,
    lifetimeMillis,
    fullMicros,
    ...(costMicros !== undefined && { costMicros }),
    isLocal: (flags & LOCAL_FLAG) !== 0,
    freesUnknown: (flags & FREE_FLAG) !== 0,
  };
}

/** Returns an integer from 0 to `max` that is written as {@link encodeToken} writes it; -1 for other texts. */
function numberIn(text: string, max: number): number {
  const number = Number(text);
  return number >= 0 && number <= max && String(number) === text ? number : -1;
}

/** Returns whether a text has the id of a hold. Stores need not check its digits. */
function hasId(text: string): boolean {
  for (let at = ID_AT; at < RULE_AT; at++) {
    const code = text.charCodeAt(at);
    const isDigit = (code >= 48 && code <= 57) || (code >= 97 && code <= 102);
    if (!isDigit) return false;
  }
  return true;
}
