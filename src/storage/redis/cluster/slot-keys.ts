import type { TakeItem } from '../../../limiter/bucket-store.js';
import type { RedisKeys } from '../redis-key.js';
import { SLOTS } from './cluster-view.js';

/** The slot of a key without a hash tag (Redis Cluster specification, "Key distribution model"). */
const calculateSlot = require('cluster-key-slot') as (key: string) => number;

/** Buckets whose slot is remembered. To cut the tenant out of each name costs more than a place for each bucket. */
const MAX_CACHED_SLOTS = 10_000;
/** Those with longer names are not: callers may choose them. UTF-16 units. */
const MAX_CACHED_KEY_UNITS = 512;

/** The slots that buckets lie on. */
export class BucketSlots {
  readonly #keys: RedisKeys;
  readonly #slots = new Map<string, number>();

  constructor(keys: RedisKeys) {
    this.#keys = keys;
  }

  /** The slot of a bucket, which is that of all buckets of its tenant. */
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

/** A hash tag whose slot `isOwn`, one of many by chance; undefined where none is. */
export function tagOfSlots(isOwn: (slot: number) => boolean): string | undefined {
  const first = Math.floor(Math.random() * 64 * SLOTS);
  for (let i = first; i < first + 64 * SLOTS; i++) {
    const tag = i.toString(36);
    if (isOwn(calculateSlot(tag))) return tag;
  }
  return undefined;
}

/** The slot of a key, which is that of its hash tag where it has one. */
export function slotOfKey(key: string): number {
  return calculateSlot(key);
}
