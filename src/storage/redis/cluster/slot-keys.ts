import type { TakeItem } from '../../../limiter/bucket-store.js';
import type { RedisKeys } from '../redis-key.js';
import { SLOTS } from './cluster-view.js';

/** Returns the slot of a key without a hash tag (Redis Cluster specification, "Key distribution model"). */
const calculateSlot = require('cluster-key-slot') as (key: string) => number;

/**
 * Maximum number of buckets whose slots are cached, because extracting the tenant from a name costs more than a lookup.
 */
const MAX_CACHED_SLOTS = 10_000;
/** Maximum length of cached names, in UTF-16 units, because callers may choose long ones. */
const MAX_CACHED_KEY_UNITS = 512;

/** Returns the slots of buckets. */
export class BucketSlots {
  readonly #keys: RedisKeys;
  readonly #slots = new Map<string, number>();

  constructor(keys: RedisKeys) {
    this.#keys = keys;
  }

  /** Returns the slot of a bucket. All buckets of a tenant share a slot. */
  of({ key, tagLength }: TakeItem): number {
    const known = this.#slots.get(key);
    if (known !== undefined) return known;
    const slot = calculateSlot(this.#keys.tagOf(key.slice(0, tagLength)));
    if (key.length > MAX_CACHED_KEY_UNITS) return slot;
    if (this.#slots.size >= MAX_CACHED_SLOTS) this.#slots.clear();
    this.#slots.set(key, slot);
    return slot;
  }
}

/** Returns a random hash tag whose slot satisfies `isOwn`, or undefined if no slot does. */
export function tagOfSlots(isOwn: (slot: number) => boolean): string | undefined {
  const first = Math.floor(Math.random() * 64 * SLOTS);
  for (let i = first; i < first + 64 * SLOTS; i++) {
    const tag = i.toString(36);
    if (isOwn(calculateSlot(tag))) return tag;
  }
  return undefined;
}

/** Returns the slot of a key: the slot of its hash tag, if it has one. */
export function slotOfKey(key: string): number {
  return calculateSlot(key);
}
