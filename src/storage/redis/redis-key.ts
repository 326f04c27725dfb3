import { createHash } from 'node:crypto';

/** What a Redis key is made of; see TakeItem. */
export interface KeyParts {
  readonly key: string;
  readonly tagLength: number;
}

/** Names owner and format of a key; another version of the format gets another prefix. */
export const DEFAULT_KEY_PREFIX = 'weir:1:';

/** Hex digits of the hash tag: 64 bits, far more than the 14 bits of a Redis Cluster slot. */
const TAG_DIGITS = 16;
const MAX_CACHED_TAGS = 10_000;
const tags = new Map<string, string>();

/**
 * The Redis key of a bucket: prefix, hash tag, bucket key. The tag is a digest of domain and first entry, so that all
 * buckets of one tenant share a slot of a Redis Cluster, whatever characters their values hold.
 */
export function redisKey(item: KeyParts, prefix: string = DEFAULT_KEY_PREFIX): string {
  return `${prefix}{${tagOf(item.key.slice(0, item.tagLength))}}${item.key}`;
}

function tagOf(text: string): string {
  let tag = tags.get(text);
  if (tag === undefined) {
    tag = createHash('sha256').update(text).digest('hex').slice(0, TAG_DIGITS);
    if (tags.size >= MAX_CACHED_TAGS) tags.clear();
    tags.set(text, tag);
  }
  return tag;
}
