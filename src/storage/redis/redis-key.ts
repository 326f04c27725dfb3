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
/** Keys remembered by {@link RedisKeys}: the digest is most of the cost of a key. */
const MAX_CACHED_KEYS = 10_000;
/** Longer keys are made anew each time: few policies have such, and callers of limit overrides. UTF-16 units. */
const MAX_CACHED_KEY_UNITS = 512;

/**
 * The Redis key of a bucket: prefix, hash tag, bucket key. The tag is a digest of domain and first entry, so that all
 * buckets of one tenant share a slot of a Redis Cluster, whatever characters their values hold.
 */
export function redisKey(item: KeyParts, prefix: string = DEFAULT_KEY_PREFIX): string {
  return `${prefix}{${tagOf(item.key.slice(0, item.tagLength))}}${item.key}`;
}

/**
 * {@link redisKey} with one prefix, remembered for buckets and tenants that are in use. Takes 20 MB at the very most.
 */
export class RedisKeys {
  private readonly prefix: string;
  private readonly keys = new Map<string, string>();
  private readonly tags = new Map<string, string>();

  constructor(prefix: string) {
    this.prefix = prefix;
  }

  /** A key of weir's own, no bucket, on the slot of a hash tag. */
  ownKey(tag: string, name: string): string {
    return `${this.prefix}{${tag}}${name}`;
  }

  of(parts: KeyParts): string {
    const { key, tagLength } = parts;
    if (key.length > MAX_CACHED_KEY_UNITS) return redisKey(parts, this.prefix);
    const known = this.keys.get(key);
    if (known !== undefined) return known;
    const named = `${this.prefix}{${this.tagOf(key.slice(0, tagLength))}}${key}`;
    if (this.keys.size >= MAX_CACHED_KEYS) this.keys.clear();
    this.keys.set(key, named);
    return named;
  }

  /** The hash tag of a tenant, whose domain and first entry `text` is. */
  tagOf(text: string): string {
    let tag = this.tags.get(text);
    if (tag === undefined) {
      tag = tagOf(text);
      if (this.tags.size >= MAX_CACHED_KEYS) this.tags.clear();
      this.tags.set(text, tag);
    }
    return tag;
  }
}

function tagOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, TAG_DIGITS);
}
