import { hash } from 'node:crypto';

/** The parts of a Redis key; see Take. */
export interface KeyParts {
  readonly key: string;
  readonly hashTagLength: number;
}

/** Prefix that identifies owner and format of a key; another version of the format gets another prefix. */
export const DEFAULT_KEY_PREFIX = 'weir:1:';

/** Hexadecimal digits of the hash tag: 64 bits, far more than the 14 bits of a Redis Cluster slot. */
const TAG_DIGITS = 16;
/** Maximum number of keys that {@link RedisKeys} caches, because the digest is most of a key's cost. */
const MAX_CACHED_KEYS = 10_000;
/** Maximum length of cached keys, in UTF-16 units. Only few policies and limit overrides have longer keys. */
const MAX_CACHED_KEY_UNITS = 512;

/**
 * Returns the Redis key of a bucket: prefix, hash tag, bucket key. The tag is a digest of domain and first entry, so
 * that all buckets of a tenant share a slot of a Redis Cluster, whatever characters their values contain.
 */
export function redisKey(item: KeyParts, prefix: string = DEFAULT_KEY_PREFIX): string {
  return `${prefix}{${tagOf(item.key.slice(0, item.hashTagLength))}}${item.key}`;
}

/**
 * Returns the name of the reservations of a bucket, in the slot of the bucket. No bucket has such a name. `frees`:
 * those that give their hits back when they expire.
 */
export function holdsKey(key: string, frees = false): string {
  return `${key}${frees ? '%freed' : '%reserved'}`;
}

/** The keys of a bucket, and of its reservations once they are needed. */
interface BucketKeys {
  readonly own: string;
  reserved: string | undefined;
  freed: string | undefined;
}

/** The hash tag of a tenant, and its slot in a Redis Cluster once it is needed. */
interface Tenant {
  readonly tag: string;
  slot: number | undefined;
}

/** Computes {@link redisKey} with one prefix, and caches the keys of recent buckets and tenants. Uses at most 40 MB. */
export class RedisKeys {
  /**
   * Computes the same keys without caching them. Bulk requests would replace the keys of all other requests, and the
   * garbage collector would copy each of their keys before it is replaced, which can pause weir for 40 ms.
   */
  readonly uncached: Pick<RedisKeys, 'of' | 'ofHolds'> = {
    of: (parts) => redisKey(parts, this.prefix),
    ofHolds: (parts, frees) => holdsKey(redisKey(parts, this.prefix), frees),
  };
  private readonly prefix: string;
  private readonly keys = new Map<string, BucketKeys>();
  private readonly tenants = new Map<string, Tenant>();

  constructor(prefix: string) {
    this.prefix = prefix;
  }

  /** Returns a key for weir's own use, in the slot of a hash tag. */
  ownKey(tag: string, name: string): string {
    return `${this.prefix}{${tag}}${name}`;
  }

  of(parts: KeyParts): string {
    return this.keysOf(parts).own;
  }

  /** Returns the key of the reservations of a bucket, see {@link holdsKey}. */
  ofHolds(parts: KeyParts, frees: boolean): string {
    const keys = this.keysOf(parts);
    const name = frees ? 'freed' : 'reserved';
    keys[name] ??= holdsKey(keys.own, frees);
    return keys[name];
  }

  private keysOf(parts: KeyParts): BucketKeys {
    const { key, hashTagLength } = parts;
    const isCached = key.length <= MAX_CACHED_KEY_UNITS;
    const known = isCached ? this.keys.get(key) : undefined;
    if (known !== undefined) return known;
    const own = isCached
      ? `${this.prefix}{${this.tenantOf(key.slice(0, hashTagLength)).tag}}${key}`
      : redisKey(parts, this.prefix);
    const keys: BucketKeys = { own, reserved: undefined, freed: undefined };
    if (!isCached) return keys;
    if (this.keys.size >= MAX_CACHED_KEYS) this.keys.clear();
    this.keys.set(key, keys);
    return keys;
  }

  /** All buckets of a tenant share a slot. */
  slotOf({ key, hashTagLength }: KeyParts): number {
    const text = key.slice(0, hashTagLength);
    // A part of a long key would keep the whole key in memory.
    if (key.length > MAX_CACHED_KEY_UNITS) return slotOfKey(tagOf(text));
    const tenant = this.tenantOf(text);
    tenant.slot ??= slotOfKey(tenant.tag);
    return tenant.slot;
  }

  /** `text` is the domain and the first entry. */
  private tenantOf(text: string): Tenant {
    let tenant = this.tenants.get(text);
    if (tenant === undefined) {
      tenant = { tag: tagOf(text), slot: undefined };
      if (this.tenants.size >= MAX_CACHED_KEYS) this.tenants.clear();
      this.tenants.set(text, tenant);
    }
    return tenant;
  }
}

function tagOf(text: string): string {
  return hash('sha256', text).slice(0, TAG_DIGITS);
}

/** Number of slots in a Redis Cluster. */
export const SLOTS = 16_384;

/**
 * Returns the slot of a key: the slot of its hash tag, if it has one (Redis Cluster specification, "Key distribution
 * model").
 */
export const slotOfKey = require('cluster-key-slot') as (key: string) => number;

/** Returns a random hash tag whose slot satisfies `isOwn`, or undefined if no slot does. */
export function tagOfSlots(isOwn: (slot: number) => boolean): string | undefined {
  const first = Math.floor(Math.random() * 64 * SLOTS);
  for (let i = first; i < first + 64 * SLOTS; i++) {
    const tag = i.toString(36);
    if (isOwn(slotOfKey(tag))) return tag;
  }
  return undefined;
}
