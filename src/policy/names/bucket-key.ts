import type { Entry } from '../../limiter/entry.js';
import type { Rate } from '../../limiter/rate.js';
import { UNIT_MICROS, type WindowUnit } from '../../limiter/window-unit.js';
import { isSecretKey, NO_SECRETS } from '../redact.js';
import type { MatcherKind, ValueMatcher } from '../values/value-matcher.js';
import { sha256Hex } from './sha256.js';

/*
 * The name of a bucket is the concatenation of its parts, each of which says itself where it ends, so that no two lists
 * of parts give the same name:
 *
 *   domain  key 1  value 1  key 2  value 2 …  [limit of a list, candidate, or limit override]  [shape]
 *
 *   5:hello        a text of 5 characters (UTF-16 units)
 *   #<64 hex>      a text of more than 128 bytes, or the value of a secret key (api_key and the like, or what `derive`
 *                  of any domain takes for API keys): its SHA-256
 *   5*files        the pattern of a node with share_threshold: one bucket for all values it matches
 *   *<64 hex>      such a pattern of more than 128 bytes
 *   @8:10.0.0.1    an address that a block of `value_cidr` holds, in the one spelling of RFC 5952; @#<64 hex> under the
 *                  key of a credential
 *   @10*10.0.0.0/8 the first block of a node with share_threshold: one bucket for all addresses in its blocks
 *   ^4*^/v1        the first pattern of a node with `value_regex` and share_threshold; ^*<64 hex> if it is long
 *   ~5:daily       a named limit of `rate_limits`; ~2 one without a name, the second; ~c the candidate
 *   !100/minute    a limit override
 *   %60            the shape of a window: its length in seconds; %day/Europe/Berlin one of a calendar. A token bucket
 *                  has no such part
 *
 *   &<64 hex>      the SHA-256 of all that follows the first entry, up to limit, candidate or override, where the name
 *                  would take more than 1,024 bytes. Of the entries of an override that follow its 1,024th character,
 *                  all texts enter the digest whole
 *
 * A part begins with a digit, `#`, `*`, `@`, `^`, `~`, `!`, `%` or `&`, and digits end at `:` or `*`: the kind is known
 * at its first characters. `open-api`, tenant acme, group user-chats:
 * `8:open-api6:tenant4:acme14:resource_group10:user-chats`.
 */

/** Texts of more bytes (UTF-8) enter as their SHA-256: store keys stay short whatever callers send. */
export const MAX_PART_BYTES = 128;

/** Names of more bytes (UTF-8) end with a digest, so that however many entries a caller sends, stores keep little. */
export const MAX_NAME_BYTES = 1024;
/** A UTF-16 unit takes at most three bytes. */
export const MAX_UNCHECKED_UNITS = Math.floor(MAX_NAME_BYTES / 3);

/** Name of a bucket, and how many of its characters cover domain and first entry. */
export interface BucketKey {
  readonly key: string;
  readonly tagLength: number;
}

/** Names of the buckets of a node's rules. */
export interface BucketName {
  /** One per rule. */
  readonly keys: readonly string[];
  /** See {@link BucketKey}: all have it in common. */
  readonly tagLength: number;
  /** See {@link Match.statNames}. */
  readonly statNames: readonly string[];
}

/** The part for one of several limits: its name, else its place, from 1. */
export function limitPart(name: string, place: number): string {
  return name === '' ? `~${place}` : `~${textPart(name)}`;
}

/** The part for a candidate. */
export const CANDIDATE_PART = '~c';

/** Names of the zone whose days are those of the epoch. */
const UTC: ReadonlySet<string> = new Set(['UTC', 'GMT', 'Etc/UTC', 'Etc/GMT']);

/**
 * The last part, for the shape of what is kept: '' for a token bucket; windows are alike if each of one is a window of
 * the other. State of one shape says nothing to a rule of another, which would begin anew and overwrite it: servers
 * that disagree about a rule, as they do while a change reaches one after the other, would forget by turns what was
 * taken. So each shape has its own bucket, and both limits together hold.
 */
export function shapePart(rate: Rate): string {
  if (rate.kind === 'token_bucket') return '';
  const { calendar, lengthMicros } = rate;
  if (calendar === undefined || (calendar.unit === 'day' && UTC.has(calendar.timeZone))) {
    return `%${lengthMicros / UNIT_MICROS.second}`;
  }
  return `%${calendar.unit}/${calendar.timeZone}`;
}

/** The part for a domain, an entry key or a value that may be shown; see {@link valuePart}. */
export function textPart(text: string): string {
  // A UTF-16 unit takes at most three bytes in UTF-8, so short texts need no count.
  if (text.length * 3 <= MAX_PART_BYTES || Buffer.byteLength(text) <= MAX_PART_BYTES) {
    return `${text.length}:${text}`;
  }
  return `#${sha256Hex(text)}`;
}

/**
 * The part for an entry's value: that of a credential, or of `secretKeys`, never enters as it is, as bucket names reach
 * stores and operators.
 */
function valuePart(key: string, value: string, secretKeys: ReadonlySet<string>): string {
  return isSecretKey(key, secretKeys) ? secretPart(value) : textPart(value);
}

/** The part for the value of a secret key. */
export function secretPart(value: string): string {
  return `#${sha256Hex(value)}`;
}

/** The part for the value of a node with `share_threshold`: its pattern. */
export function patternPart(pattern: string): string {
  if (Buffer.byteLength(pattern) <= MAX_PART_BYTES) return `${pattern.length}*${pattern}`;
  return `*${sha256Hex(pattern)}`;
}

/**
 * The part for an address that a block holds. Not the part of a text: a node that is written with an address has a
 * bucket of its own, whatever other spellings of the address meet a block.
 */
export function addressPart(address: string, isSecret: boolean): string {
  return `@${isSecret ? secretPart(address) : textPart(address)}`;
}

/** What the part of each kind of matcher begins with. */
const MATCHER_MARKS: Readonly<Record<MatcherKind, string>> = { cidr: '@', regex: '^' };

/**
 * The part for all values of a node with `share_threshold` that matches by blocks or regular expressions: its first,
 * which no other node of its level has. So a list may grow at its end, and its bucket stays.
 */
export function sharedMatcherPart({ kind, items }: ValueMatcher): string {
  return MATCHER_MARKS[kind] + patternPart(items[0] ?? '');
}

/**
 * The name of `tag`, domain and first entry, and of what follows: whole, or with its digest if that takes more than
 * {@link MAX_NAME_BYTES}.
 */
export function boundedKey(tag: string, rest: string): BucketKey {
  const key = tag + rest;
  return { key: fits(key) ? key : withDigest(tag, rest), tagLength: tag.length };
}

function fits(key: string): boolean {
  const { length } = key;
  if (length <= MAX_UNCHECKED_UNITS) return true;
  return length <= MAX_NAME_BYTES && Buffer.byteLength(key) <= MAX_NAME_BYTES;
}

function withDigest(tag: string, rest: string): string {
  return `${tag}&${sha256Hex(rest)}`;
}

/**
 * The bucket of entries that all enter with their own values, credentials and those of `secretKeys` as digests. Takes
 * time linear in their texts: where the name is too long anyhow, no text is made short by itself.
 */
export function entriesKey(
  domain: string,
  entries: readonly Entry[],
  secretKeys: ReadonlySet<string> = NO_SECRETS,
): BucketKey {
  let tag = textPart(domain);
  let rest = '';
  for (let i = 0; i < entries.length; i++) {
    const { key, value } = entries[i] as Entry;
    if (i === 0) tag += textPart(key) + valuePart(key, value, secretKeys);
    else if (rest.length <= MAX_NAME_BYTES) rest += textPart(key) + valuePart(key, value, secretKeys);
    else rest += `${wholePart(key)}${wholePart(value)}`;
  }
  return boundedKey(tag, rest);
}

function wholePart(text: string): string {
  return `${text.length}:${text}`;
}

/**
 * The bucket of a limit override (RateLimitDescriptor.limit), derived from the {@link entriesKey} of the entries after
 * `derive`: the override is of these values, as in the reference, also where a rule shares one bucket between several.
 * Never the bucket of the rule itself, nor of an override of another size or unit. Its {@link shapePart} is still to
 * follow.
 */
export function overrideKey(base: BucketKey, unit: WindowUnit, requestsPerUnit: number): BucketKey {
  return extendedKey(base, `!${requestsPerUnit}/${unit}`);
}

/** The limit in the name of the bucket of a limit override, `100/minute`: its last part but for a shape. */
export function overrideOfKey(key: string): string {
  return /!(\d+\/[a-z]+)(?:%[^!]*)?$/.exec(key)?.[1] ?? '';
}

/**
 * `base`, which takes at most {@link MAX_NAME_BYTES}, with parts behind it, and with a digest of what is in front of
 * them where both together take more.
 */
export function extendedKey(base: BucketKey, parts: string): BucketKey {
  const key = base.key + parts;
  if (fits(key)) return { key, tagLength: base.tagLength };
  const tag = base.key.slice(0, base.tagLength);
  return { key: withDigest(tag, base.key.slice(base.tagLength)) + parts, tagLength: base.tagLength };
}
