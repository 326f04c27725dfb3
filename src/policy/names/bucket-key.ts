import type { Entry } from '../../limiter/entry.js';
import type { Rate } from '../../limiter/rate.js';
import { UNIT_MICROS, type WindowUnit } from '../../limiter/window-unit.js';
import { isSecretKey, NO_SECRETS, sha256Hex } from '../redact.js';
import type { MatcherKind, ValueMatcher } from '../values/value-matcher.js';

/*
 * The name of a bucket is the concatenation of its parts. Each part marks its own end, so different lists of parts
 * always have different names:
 *
 *     domain  key 1  value 1  key 2  value 2 …  [limit of a list, or limit override]  [shape]
 *
 *     5:hello        a string of 5 characters (UTF-16 units)
 *     #<64 hex>      the SHA-256 of a string of more than 128 bytes, or of the value of a secret key, such as api_key
 *                    or a key that `derive` of any domain uses for API keys
 *     5*files        the pattern of a node with share_threshold: one bucket for all values that it matches
 *     *<64 hex>      such a pattern of more than 128 bytes
 *     0*             the entry that names the class of the caller: one bucket for all classes (`priorities`)
 *     @8:10.0.0.1    an address in a block of `value_cidr`, as in RFC 5952; @#<64 hex> for the key of a credential
 *     @10*10.0.0.0/8 the first block of a node with share_threshold: one bucket for all addresses in its blocks
 *     ^4*^/v1        the first pattern of a node with `value_regex` and share_threshold; ^*<64 hex> if it is long
 *     ~5:daily       a named limit of `rate_limits`; ~2 the second one, if it has no name
 *     !100/minute    a limit override
 *     %60            the shape of a window: its length in seconds, or %day/Europe/Berlin for a calendar window.
 *                    %holds for a limit on concurrent requests. Token buckets have no such part
 *
 *     &<64 hex>      the SHA-256 of everything between the first entry and the limit of a list or override, if a name
 *                    would exceed 1,024 bytes. In the name of an override, strings of entries after its 1,024th
 *                    character are hashed completely
 *
 * A part begins with a digit, `#`, `*`, `@`, `^`, `~`, `!`, `%` or `&`, and digits end with `:` or `*`, so its first
 * characters determine its kind. Example for `open-api`, tenant acme, group user-chats:
 * `8:open-api6:tenant4:acme14:resource_group10:user-chats`.
 */

/**
 * Maximum length of strings in a bucket's name, in UTF-8 bytes; longer ones become their SHA-256, so that store keys
 * stay short whatever callers send.
 */
export const MAX_PART_BYTES = 128;

/**
 * Maximum length of a name, in UTF-8 bytes; a longer one ends with a digest, so that stores keep little even if a
 * caller sends many entries.
 */
export const MAX_NAME_BYTES = 1024;
/** Maximum length in UTF-16 units that certainly fits, because a unit takes at most three bytes. */
const MAX_UNCHECKED_UNITS = Math.floor(MAX_NAME_BYTES / 3);

/** Name of a bucket, and the number of characters for domain and first entry. */
export interface BucketKey {
  readonly key: string;
  readonly hashTagLength: number;
}

/** Returns the part for one of several limits: its name, or its position from 1. */
export function limitPart(name: string, place: number): string {
  return name === '' ? `~${place}` : `~${textPart(name)}`;
}

/** The part for the value of an entry that names a class. No pattern is empty, so no other node has this part. */
export const CLASS_PART = '0*';

/** The shape of a limit on concurrent requests. */
const CONCURRENCY_PART = '%holds';

/** Names of the time zone whose days are those of the epoch. */
const UTC: ReadonlySet<string> = new Set(['UTC', 'GMT', 'Etc/UTC', 'Etc/GMT']);

/**
 * Returns the last part, for the shape of the state: '' for a token bucket. Windows have the same part if each window
 * of one is a window of the other. A rule of another shape could not use the state and would overwrite it. Servers with
 * different versions of a rule, as during a rollout, would then erase each other's state. Each shape therefore has its
 * own bucket, and both limits apply.
 */
export function shapePart(rate: Rate): string {
  if (rate.kind === 'token_bucket') return '';
  if (rate.kind === 'concurrency') return CONCURRENCY_PART;
  const { calendar, lengthMicros } = rate;
  if (calendar === undefined || (calendar.unit === 'day' && UTC.has(calendar.timeZone))) {
    return `%${lengthMicros / UNIT_MICROS.second}`;
  }
  return `%${calendar.unit}/${calendar.timeZone}`;
}

/** Returns the part for a domain, an entry key or a value that may be shown; see {@link valuePart}. */
export function textPart(text: string): string {
  return isShort(text) ? `${text.length}:${text}` : `#${sha256Hex(text)}`;
}

/** Returns whether a string takes at most {@link MAX_PART_BYTES}. A UTF-16 unit takes one to three bytes in UTF-8. */
function isShort(text: string): boolean {
  const { length } = text;
  if (length * 3 <= MAX_PART_BYTES) return true;
  return length <= MAX_PART_BYTES && Buffer.byteLength(text) <= MAX_PART_BYTES;
}

/**
 * Returns the part for an entry's value. Values of credentials and of `secretKeys` are hashed, because stores and
 * operators see bucket names.
 */
function valuePart(key: string, value: string, secretKeys: ReadonlySet<string>): string {
  return isSecretKey(key, secretKeys) ? secretPart(value) : textPart(value);
}

export function secretPart(value: string): string {
  return `#${sha256Hex(value)}`;
}

/** Returns the part for the value of a node with `share_threshold`: its pattern. */
export function patternPart(pattern: string): string {
  if (Buffer.byteLength(pattern) <= MAX_PART_BYTES) return `${pattern.length}*${pattern}`;
  return `*${sha256Hex(pattern)}`;
}

/**
 * Returns the part for an address in a block. It differs from the part of a string: a node with the address as its
 * value has its own bucket, whatever spellings of the address match a block.
 */
export function addressPart(address: string, isSecret: boolean): string {
  return `@${isSecret ? secretPart(address) : textPart(address)}`;
}

/** First character of the part of each kind of matcher. */
const MATCHER_MARKS: Readonly<Record<MatcherKind, string>> = { cidr: '@', regex: '^' };

/**
 * Returns the part for all values of a node with `share_threshold` and a matcher: its first item, which no other node
 * of its level has. A list can therefore grow at its end and keep its bucket.
 */
export function sharedMatcherPart({ kind, items }: ValueMatcher): string {
  return MATCHER_MARKS[kind] + patternPart(items[0] ?? '');
}

/**
 * Returns the name for `tag` (domain and first entry) and the rest; with a digest if it exceeds {@link MAX_NAME_BYTES}.
 */
export function boundedKey(tag: string, rest: string): BucketKey {
  const key = tag + rest;
  return { key: fits(key) ? key : withDigest(tag, rest), hashTagLength: tag.length };
}

/** Returns whether a name takes at most {@link MAX_NAME_BYTES}. */
export function fits(key: string): boolean {
  const { length } = key;
  if (length <= MAX_UNCHECKED_UNITS) return true;
  return length <= MAX_NAME_BYTES && Buffer.byteLength(key) <= MAX_NAME_BYTES;
}

function withDigest(tag: string, rest: string): string {
  return `${tag}&${sha256Hex(rest)}`;
}

/**
 * Returns the bucket of entries that are named by their own values; secret values are hashed. Takes linear time: if the
 * name is too long in any case, single strings are not shortened.
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
 * Returns the bucket of a limit override (RateLimitDescriptor.limit), derived from the {@link entriesKey} of the
 * entries after `derive`. An override applies to these values, as in the reference, even if a rule shares one bucket.
 * It differs from the bucket of the rule, and of overrides with another limit or unit. The caller appends its
 * {@link shapePart}.
 */
export function overrideKey(base: BucketKey, unit: WindowUnit, requestsPerUnit: number): BucketKey {
  return extendedKey(base, `!${requestsPerUnit}/${unit}`);
}

/** Returns the limit in the name of a limit override's bucket, `100/minute`: the last part before a shape. */
export function overrideOfKey(key: string): string {
  return /!(\d+\/[a-z]+)(?:%[^!]*)?$/.exec(key)?.[1] ?? '';
}

/**
 * Appends parts to `base`, which takes at most {@link MAX_NAME_BYTES}. If the result exceeds that, `base` is shortened
 * by a digest.
 */
export function extendedKey(base: BucketKey, parts: string): BucketKey {
  const key = base.key + parts;
  if (fits(key)) return { key, hashTagLength: base.hashTagLength };
  const tag = base.key.slice(0, base.hashTagLength);
  return {
    key: withDigest(tag, base.key.slice(base.hashTagLength)) + parts,
    hashTagLength: base.hashTagLength,
  };
}

/** Length of a digest in a name, with its mark. */
const DIGEST_UNITS = 65;

/** Characters that begin or end a part. Comparing codes is several times faster than comparing strings. */
const [HASH, STAR, AT, CARET, COLON, AMPERSAND, TILDE, EXCLAMATION, PERCENT] = [...Buffer.from('#*@^:&~!%')];

/** Returns the end of the part of a name that begins at `at`; more than the length of the name if none begins there. */
function partEnd(key: string, at: number): number {
  let end = at;
  let code = key.charCodeAt(end);
  if (code === AT || code === CARET) code = key.charCodeAt(++end);
  if (code === HASH || code === STAR) return end + DIGEST_UNITS;
  let units = 0;
  for (; code >= 48 && code <= 57; code = key.charCodeAt(++end)) units = 10 * units + code - 48;
  return code === COLON || code === STAR ? end + 1 + units : key.length + 1;
}

/**
 * Returns the value of an entry in the name of a bucket of a rule. Undefined without the entry, or if the name contains
 * only a digest of the value.
 */
export function valueInKey(key: string, entry: string): string | undefined {
  const wanted = textPart(entry);
  for (let at = partEnd(key, 0); at < key.length; ) {
    const valueAt = partEnd(key, at);
    const end = partEnd(key, valueAt);
    if (end > key.length) return undefined;
    if (key.slice(at, valueAt) === wanted) return /^@?\d+:(.*)$/s.exec(key.slice(valueAt, end))?.[1];
    at = end;
  }
  return undefined;
}

/**
 * Divides the name of a bucket of a rule: returns its `hashTagLength`, and the parts after its entries, which are
 * `Rule.bucketSuffix`. Undefined if the text is not such a name.
 */
export function divideKey(
  key: string,
): { readonly hashTagLength: number; readonly suffix: string } | undefined {
  const hashTagLength = partEnd(key, partEnd(key, partEnd(key, 0)));
  let end = hashTagLength;
  while (end < key.length) {
    const code = key.charCodeAt(end);
    if (code === TILDE || code === EXCLAMATION || code === PERCENT) break;
    end = code === AMPERSAND ? end + DIGEST_UNITS : partEnd(key, partEnd(key, end));
  }
  return end > key.length ? undefined : { hashTagLength, suffix: key.slice(end) };
}
