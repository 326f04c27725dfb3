import { HOLD_ID_DIGITS, type HoldValues, hasBoundId } from '../../limiter/holds/hold.js';
import { divideKey, MAX_NAME_BYTES } from '../../policy/names/bucket-key.js';
import { RULE_DIGEST_LENGTH } from '../../policy/names/stat-name.js';
import type { Rule } from '../../policy/rule.js';
import { FREES, idOfTerms, KEEPS, NONCE_LENGTH } from './hold-ids.js';
import { MAC_LENGTH, type TokenMac } from './token-mac.js';

/** Number of digits of a {@link firstEditionDigest}: a number with 32 bits to base 36. */
export const FIRST_EDITION_DIGITS = 7;

/** Returns the digest of a rule in tokens of the first edition: FNV-1a with 32 bits of its path and its suffix. */
export function firstEditionDigest({ path, bucketSuffix }: Pick<Rule, 'path' | 'bucketSuffix'>): string {
  const text = `${path} ${bucketSuffix}`;
  let hash = 0x811c_9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x0100_0193);
  return (hash >>> 0).toString(36).padStart(FIRST_EDITION_DIGITS, '0');
}

/**
 * A hold in a token. The token contains the name of the bucket, so that the store does not have to keep this name for
 * each hold. It also repeats the values that the store has. weir trusts none of these values: a store settles a hold
 * only if all of them match.
 */
export interface TokenHold extends HoldValues {
  /** Name and tag of the bucket; see Take. */
  readonly key: string;
  readonly hashTagLength: number;
  /** Suffix of the bucket name; see `Rule.bucketSuffix`. */
  readonly suffix: string;
  /** Digest of the rule that placed the hold; see `Rule.digest`. */
  readonly rule: string;
  /** Whether the hold is in the local buckets of a process, because the store was unavailable. */
  readonly isLocal: boolean;
  /** Whether the store returns the hits if the use is unknown. A reload does not change this for existing holds. */
  readonly freesUnknown: boolean;
}

/** A hold in a new token, with the terms that its id depends on. */
export interface PlacedHold extends TokenHold {
  readonly terms: string;
}

const LOCAL_FLAG = 1;
/** Occurs only in tokens of the first edition. */
const FREE_FLAG = 2;
/** The name of the bucket is in base64url. */
const ENCODED_FLAG = 4;
const ALL_FLAGS = LOCAL_FLAG | FREE_FLAG | ENCODED_FLAG;

/** Names that contain such characters are encoded, so that tokens need no quoting in JSON, headers and commands. */
const ENCODED_CHARACTER = /[^\w:.~%@/#!&^*-]/;
const MAX_UINT32 = 0xffff_ffff;

/** First character of a token. Tokens of the first edition begin with a digit. */
const START = 'h';
const HOLDS_AT = START.length + MAC_LENGTH;
/** Maximum length of a token. Envoy keeps it in memory, and sends it back. */
export const MAX_TOKEN_CHARACTERS = 8192;
/**
 * Maximum total length of the tokens that weir decodes for one request. It allows for long tokens of the first edition.
 */
export const MAX_TOKENS_CHARACTERS = 32_768;
/** If a token is longer than this, its parts are copied, because ends may wait for the store for a long time. */
const LONG_TOKEN = 1024;

/**
 * Maximum length of a hold in a token, not counting the bucket name and the terms: a comma, the flags, dots,
 * `fullAtMicros`, a hyphen and `refillMicros`.
 */
const MAX_FRAME = 1 + 1 + 1 + 16 + 1 + 16 + 1;

/** Number of holds that always fit into a token, even if the names of their buckets are as long as possible. */
export const HOLDS_THAT_FIT = 5;

/** Returns the maximum length of a token with these holds, before their `fullAtMicros` is known. */
export function maxTokenLength(holds: readonly Pick<PlacedHold, 'key' | 'terms'>[]): number {
  let length = HOLDS_AT;
  for (const { key, terms } of holds) length += MAX_FRAME + terms.length + nameOf(key).length;
  return length;
}

/**
 * Encodes the holds of one request. A token consists of a letter, a MAC, and the holds, which are separated by commas.
 * A hold consists of a digit with its flags and the terms, then `fullAtMicros`, and then the name of the bucket,
 * separated by dots. For a token bucket, `fullAtMicros` is followed by a hyphen and `refillMicros`.
 */
export function encodeToken(holds: readonly PlacedHold[], tokenMac: Pick<TokenMac, 'sign'>): string {
  const text = holds.length === 1 ? textOf(holds[0] as PlacedHold) : holds.map(textOf).join(',');
  return START + tokenMac.sign(text, longestLifetime(holds)) + text;
}

/** In milliseconds. */
function longestLifetime(holds: readonly (TokenHold | undefined)[]): number {
  let longest = 0;
  for (const hold of holds) longest = Math.max(longest, hold?.lifetimeMillis ?? 0);
  return longest;
}

function textOf({ key, terms, fullAtMicros, refillMicros = 0, isLocal }: PlacedHold): string {
  const name = nameOf(key);
  const flags = (isLocal ? LOCAL_FLAG : 0) + (name === key ? 0 : ENCODED_FLAG);
  const times = refillMicros > 0 ? `${fullAtMicros}-${refillMicros}` : `${fullAtMicros}`;
  return `${flags}${terms}.${times}.${name}`;
}

function nameOf(key: string): string {
  return ENCODED_CHARACTER.test(key) ? Buffer.from(key).toString('base64url') : key;
}

/**
 * Finds out whether this process, or one that shares its key, created a token, and did so recently enough that its
 * holds may exist.
 */
export class TokenSource {
  readonly #tokenMac: Pick<TokenMac, 'isAuthentic'>;
  readonly #token: string;
  readonly #lifetimeMillis: number;
  #isAuthentic: boolean | undefined;

  /** `holds`: the decoded token. */
  constructor(
    token: string,
    holds: readonly (TokenHold | undefined)[],
    tokenMac: Pick<TokenMac, 'isAuthentic'>,
  ) {
    this.#token = token;
    this.#lifetimeMillis = longestLifetime(holds);
    this.#tokenMac = tokenMac;
  }

  /** Checks the MAC when it is called for the first time. */
  isAuthentic(): boolean {
    const token = this.#token;
    this.#isAuthentic ??=
      token.startsWith(START) &&
      this.#tokenMac.isAuthentic(
        token.slice(START.length, HOLDS_AT),
        token.slice(HOLDS_AT),
        this.#lifetimeMillis,
      );
    return this.#isAuthentic;
  }
}

/** Returns the holds of a token. The last element is undefined if the text, or the rest of it, is not a valid token. */
export function decodeToken(token: string): readonly (TokenHold | undefined)[] {
  const isOfFirstEdition = !token.startsWith(START);
  if (token.length > (isOfFirstEdition ? MAX_TOKENS_CHARACTERS : MAX_TOKEN_CHARACTERS)) return [undefined];
  const holds: (TokenHold | undefined)[] = [];
  for (let at = isOfFirstEdition ? 0 : HOLDS_AT; at >= 0; ) {
    const end = token.indexOf(',', at);
    const text = token.slice(at, end < 0 ? token.length : end);
    const hold = decodeHold(token.length > LONG_TOKEN ? copyOf(text) : text, isOfFirstEdition);
    holds.push(hold);
    if (hold === undefined) break;
    at = end < 0 ? end : end + 1;
  }
  return holds;
}

/** Returns a copy of a part of a token. Unlike a slice, the copy does not keep the whole token in memory. */
export function copyOf(part: string): string {
  return Buffer.from(part).toString();
}

const TERMS_AT = 1;
/** Offsets of the digest of the rule, the effect of an unknown use, and the hits. */
const RULE_AT = TERMS_AT + NONCE_LENGTH;
const EFFECT_AT = RULE_AT + RULE_DIGEST_LENGTH;
const AMOUNT_AT = EFFECT_AT + 1;
/** The same offsets in a token of the first edition, which contains the id and a digest of 32 bits. */
const FIRST_RULE_AT = TERMS_AT + HOLD_ID_DIGITS;
const FIRST_AMOUNT_AT = FIRST_RULE_AT + FIRST_EDITION_DIGITS;

function decodeHold(text: string, isOfFirstEdition: boolean): TokenHold | undefined {
  const amountAt = isOfFirstEdition ? FIRST_AMOUNT_AT : AMOUNT_AT;
  const lifetimeAt = text.indexOf('.', amountAt) + 1;
  const timesAt = text.indexOf('.', lifetimeAt) + 1;
  const nameAt = text.indexOf('.', timesAt) + 1;
  const flags = numberIn(text.slice(0, TERMS_AT), ALL_FLAGS);
  const amount = numberIn(text.slice(amountAt, lifetimeAt - 1), MAX_UINT32);
  const lifetimeMillis = numberIn(text.slice(lifetimeAt, timesAt - 1), MAX_UINT32);
  const times = text.slice(timesAt, nameAt - 1);
  const hyphenAt = times.indexOf('-');
  const hasCost = hyphenAt >= 0;
  const fullAtMicros = numberIn(hasCost ? times.slice(0, hyphenAt) : times, Number.MAX_SAFE_INTEGER);
  const refillMicros = hasCost ? numberIn(times.slice(hyphenAt + 1), Number.MAX_SAFE_INTEGER) : undefined;
  if (flags < 0 || amount < 0 || lifetimeMillis < 0 || fullAtMicros < 0) return undefined;
  if (refillMicros !== undefined && refillMicros <= 0) return undefined;
  const key = keyIn(text.slice(nameAt), (flags & ENCODED_FLAG) !== 0);
  const parts = key === undefined ? undefined : divideKey(key);
  if (key === undefined || parts === undefined) return undefined;
  const { hashTagLength, suffix } = parts;
  const isLocal = (flags & LOCAL_FLAG) !== 0;
  let id: string;
  let rule: string;
  let freesUnknown: boolean;
  if (isOfFirstEdition) {
    id = text.slice(TERMS_AT, FIRST_RULE_AT);
    rule = text.slice(FIRST_RULE_AT, FIRST_AMOUNT_AT);
    freesUnknown = (flags & FREE_FLAG) !== 0;
    if (!isFirstEditionId(id)) return undefined;
  } else {
    const effect = text[EFFECT_AT];
    if ((flags & FREE_FLAG) !== 0 || (effect !== KEEPS && effect !== FREES)) return undefined;
    id = idOfTerms(text.slice(TERMS_AT, timesAt - 1));
    rule = text.slice(RULE_AT, EFFECT_AT);
    freesUnknown = effect === FREES;
  }
  return {
    key,
    hashTagLength,
    suffix,
    id,
    rule,
    amount,
    lifetimeMillis,
    fullAtMicros,
    refillMicros,
    isLocal,
    freesUnknown,
  };
}

/** Returns the name of a bucket in a token; undefined if the name is longer than that of any bucket. */
function keyIn(name: string, isEncoded: boolean): string | undefined {
  const bytes = isEncoded ? Buffer.byteLength(name, 'base64url') : Buffer.byteLength(name);
  if (bytes > MAX_NAME_BYTES) return undefined;
  return isEncoded ? Buffer.from(name, 'base64url').toString() : name;
}

/** Returns an integer from 0 to `max` if it is written as {@link encodeToken} writes it; otherwise -1. */
function numberIn(text: string, max: number): number {
  const number = Number(text);
  // A fraction such as 1e-7 would become a charge that is valid without a hold.
  return Number.isInteger(number) && number >= 0 && number <= max && String(number) === text ? number : -1;
}

/**
 * Returns whether a text can be the id of a hold of the first edition. About one in a million of these ids looks like
 * an id of this edition. Such an id is not accepted, because a token of the first edition does not prove the terms of a
 * hold.
 */
function isFirstEditionId(id: string): boolean {
  return /^[0-9a-f]+$/.test(id) && !hasBoundId({ id });
}
