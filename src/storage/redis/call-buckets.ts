import type { TakeItem } from '../../limiter/bucket-store.js';
import { freesExpired } from '../../limiter/holds/hold.js';
import { append } from '../../runtime/append.js';
import type { RedisKeys } from './redis-key.js';
import type { BucketSlot } from './take-run.js';

/** Returns the keys of buckets. */
export type BatchKeys = Pick<RedisKeys, 'of' | 'ofHolds'>;

/** The buckets of one script call, and the sets of their holds. */
export class CallBuckets {
  /** The keys of buckets and sets, in the order of their indexes. */
  keys: string[] = [];
  private readonly names: BatchKeys;
  /** The first bucket, and a map of all buckets once there are several. */
  private firstKey = '';
  private firstSlot: BucketSlot | undefined;
  private slots: Map<string, BucketSlot> | undefined;
  /** The key and the result of the latest lookup. */
  private lastKey = '';
  private lastSlot: BucketSlot | undefined;

  constructor(names: BatchKeys) {
    this.names = names;
  }

  /**
   * Returns a bucket of the call. Caches the latest lookup, because a call looks up the same key several times. The
   * lookup costs more than adding a take.
   */
  find(key: string): BucketSlot | undefined {
    if (key === this.lastKey) return this.lastSlot;
    this.lastKey = key;
    this.lastSlot = this.slots === undefined && key === this.firstKey ? this.firstSlot : this.slots?.get(key);
    return this.lastSlot;
  }

  /** Returns the bucket of an item, which is added if it is missing. */
  slotOf(item: TakeItem): BucketSlot {
    const { key } = item;
    let slot = this.find(key);
    if (slot !== undefined) return slot;
    this.keys = append(this.keys, this.names.of(item));
    slot = { index: this.keys.length, last: undefined, steps: 0, reserved: 0, freed: 0 };
    this.lastSlot = slot;
    if (this.firstSlot === undefined) {
      this.firstKey = key;
      this.firstSlot = slot;
    } else {
      this.slots ??= new Map([[this.firstKey, this.firstSlot]]);
      this.slots.set(key, slot);
    }
    return slot;
  }

  /** Returns the index of the set of an item's holds. The bucket of a limit on concurrent requests is such a set. */
  indexOfHolds(item: TakeItem, slot: BucketSlot): number {
    if (item.rate.kind === 'concurrency') return slot.index;
    const frees = freesExpired(item);
    const name = frees ? 'freed' : 'reserved';
    if (slot[name] === 0) {
      this.keys = append(this.keys, this.names.ofHolds(item, frees));
      slot[name] = this.keys.length;
    }
    return slot[name];
  }
}
