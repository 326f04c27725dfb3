import type { Take } from '../../limiter/bucket-store.js';
import {
  type HeldHits,
  type HoldValues,
  MAX_SLOTS_PER_ITEM,
  type NewHold,
} from '../../limiter/holds/hold.js';
import {
  type HeldBucket,
  type ListedHolds,
  type StoredHold,
  storedCount,
} from '../../limiter/holds/hold-inspector.js';
import { checkInvariant } from '../../runtime/invariant.js';
import { ExpiryHeap } from './expiry-heap.js';
import { HoldId, HoldRecords } from './hold-records.js';
import { KeyIndex } from './key-index.js';
import type { Slot } from './record-arena.js';

/** Bytes of a hold: its record (56), its hash chain (4), and its heap entry (12). */
const HOLD_BYTES = 72;
/** Bytes of a set, in addition to its key. */
const SET_BYTES = 288;
/** Maximum number of expired holds that are removed in one turn of the event loop. Removing them takes about 1 ms. */
const MAX_EXPIRED_PER_TURN = 1000;

/** A bucket to which the hits of expired holds are returned, and the rate of its latest hold. */
export type FreedBucket = Pick<Take, 'key' | 'rate'>;

/** An expired hold, and the bucket to which its hits are returned. */
interface ExpiredHold {
  readonly bucket: FreedBucket;
  readonly hold: OldestHold;
  readonly endMicros: number;
}

/** Returns the hits of a hold to its bucket. The hold expired `sinceMicros` ago. */
type OnExpired = (bucket: FreedBucket, hold: OldestHold, sinceMicros: number) => void;

/** The holds of one bucket. */
interface HoldSet {
  readonly key: string;
  /** Index in the list of sets. The records of the holds contain this number. */
  readonly number: number;
  count: number;
  /** Undefined if expired holds keep their hits. */
  bucket: FreedBucket | undefined;
  /** One queue for each lifetime. A set has several queues only after a policy has changed the lifetime. */
  readonly queues: HoldQueue[];
}

/** A hold in a bucket, and the time at which it was placed. */
export interface OldestHold extends HeldHits {
  /** Time at which the hold was placed, on the clock of its rate. */
  readonly takenMicros: number;
}

/**
 * The holds of this process, by id. The records are stored as bytes in chunks, so that the garbage collector does not
 * have to visit each hold. Times are in microseconds of the monotonic clock.
 *
 * If more than half of the memory is in use, a bucket may have at most as many holds as still fit into the free memory.
 * For this reason, the holds of one bucket cannot use up the memory for all others.
 */
export class HoldTable {
  /** Number of holds. */
  size = 0;
  readonly #maxBytes: number;
  readonly #monotonicMicros: () => number;
  readonly #onExpired: OnExpired;
  readonly #records = new HoldRecords();
  readonly #index = new KeyIndex<HoldId>(this.#records);
  readonly #heap = new ExpiryHeap(this.#records);
  readonly #sets = new Map<string, HoldSet>();
  readonly #setsByNumber: (HoldSet | undefined)[] = [];
  readonly #freeNumbers: number[] = [];
  readonly #id = new HoldId();
  /**
   * The key and the result of the latest lookup, because a request that places a hold looks up its set several times.
   */
  #lastKey = '';
  #lastSet: HoldSet | undefined;
  /** The latest settlement whose hold was found, and the slot of this hold. Undefined after a record has moved. */
  #found: HoldValues | undefined;
  #foundSlot: Slot = -1;
  #setBytes = 0;
  #isExpiring = false;

  constructor(maxBytes: number, monotonicMicros: () => number, onExpired: OnExpired = () => {}) {
    this.#maxBytes = maxBytes;
    this.#monotonicMicros = monotonicMicros;
    this.#onExpired = onExpired;
  }

  /** Estimated bytes of the holds. */
  get bytes(): number {
    return this.#setBytes + HOLD_BYTES * this.size;
  }

  /**
   * Removes expired holds, at most {@link MAX_EXPIRED_PER_TURN} in each turn of the event loop. `isLate`: other
   * requests may have been decided since the holds expired.
   */
  expire(nowMicros: number, isLate = false): void {
    if (this.#isExpiring || this.#heap.size === 0 || this.#heap.topKey() > nowMicros) return;
    const freed: ExpiredHold[] = [];
    let removed = 0;
    for (; removed < MAX_EXPIRED_PER_TURN; removed++) {
      const endMicros = this.#heap.size === 0 ? Infinity : this.#heap.topKey();
      if (endMicros > nowMicros) break;
      const slot = this.#heap.top();
      const { bucket } = this.#setOf(slot);
      if (bucket !== undefined) freed.push({ bucket, hold: this.#holdAt(slot), endMicros });
      this.#drop(slot);
    }
    const isPart = removed === MAX_EXPIRED_PER_TURN;
    for (const { bucket, hold, endMicros } of freed) {
      // If expired holds are left, requests may be decided before all of them are removed. Each hold then ends now.
      this.#onExpired(bucket, hold, isLate || isPart ? 0 : nowMicros - endMicros);
    }
    if (!isPart) return;
    this.#isExpiring = true;
    setImmediate(() => {
      this.#isExpiring = false;
      this.expire(this.#monotonicMicros(), true);
    });
  }

  /**
   * Returns the number of occupied slots in a bucket, including those of expired holds that {@link expire} has not
   * removed yet.
   */
  countOf(key: string): number {
    return this.#find(key)?.count ?? 0;
  }

  /** Returns the estimated bytes of `slots` more holds of a bucket. */
  bytesOf(key: string, slots: number): number {
    return HOLD_BYTES * slots + (this.#find(key) === undefined ? setBytes(key) : 0);
  }

  /** Returns whether there is room for `slots` more holds of a bucket in addition to `reserved` bytes. */
  hasRoomFor(key: string, slots: number, reserved = 0): boolean {
    const set = this.#find(key);
    const used = this.bytes + reserved;
    const free = this.#maxBytes - used - (set === undefined ? setBytes(key) : 0);
    if (HOLD_BYTES * slots > free) return false;
    return 2 * used < this.#maxBytes || HOLD_BYTES * ((set?.count ?? 0) + slots) <= free;
  }

  /**
   * Adds a hold to a bucket. `takenMicros` is the time at which the hold is placed, on the clock of the rate. If the
   * hold has several `slots`, each of them is stored separately.
   */
  add(
    key: string,
    hold: NewHold,
    held: HeldHits,
    takenMicros: number,
    slots = 1,
    nowMicros = this.#monotonicMicros(),
  ): void {
    const { id, lifetimeMillis } = hold;
    const set = this.#find(key) ?? this.#createSet(key, lifetimeMillis);
    const queue = this.#queueOf(set, lifetimeMillis);
    const endMicros = nowMicros + lifetimeMillis * 1000;
    for (let slot = 0; slot < slots; slot++) {
      const record = this.#records.create(this.#id.load(id, slot), set.number);
      this.#records.store(record, slot === 0 ? held : { ...held, amount: 0 }, lifetimeMillis, takenMicros);
      this.#index.insert(record);
      this.size++;
      this.#heap.push(record, endMicros);
      queue.push(record);
      set.count++;
    }
  }

  /** Makes the table return the hits of a set's holds to a bucket when they expire. */
  refundTo(key: string, bucket: FreedBucket): void {
    const set = this.#find(key);
    if (set !== undefined && set.bucket?.rate !== bucket.rate)
      set.bucket = { key: bucket.key, rate: bucket.rate };
  }

  /** Returns the time at which a hold was placed; -1 if no hold has all values of `settles`. */
  takenMicrosOf(key: string, settles: HoldValues, nowMicros = this.#monotonicMicros()): number {
    const slot = this.#index.find(this.#id.load(settles.id, 0));
    if (slot < 0 || this.#heap.keyOf(slot) <= nowMicros) return -1;
    const isSame = this.#setOf(slot).key === key && this.#records.isHoldOf(slot, settles);
    if (!isSame) return -1;
    this.#found = settles;
    this.#foundSlot = slot;
    return this.#takenMicrosAt(slot);
  }

  /**
   * Returns the hits of the oldest hold in a bucket, and the time at which it was placed. Undefined if the bucket has
   * no holds.
   */
  oldestOf(key: string, nowMicros = this.#monotonicMicros()): OldestHold | undefined {
    const slot = this.#oldestSlot(key, nowMicros);
    return slot < 0 ? undefined : this.#holdAt(slot);
  }

  /** Removes the oldest hold of a bucket. */
  settleOldest(key: string, nowMicros = this.#monotonicMicros()): void {
    const slot = this.#oldestSlot(key, nowMicros);
    if (slot >= 0) this.#drop(slot);
  }

  /** Removes a hold, with all its slots. */
  settle(settles: HoldValues, slots = 1): void {
    for (let slot = 0; slot < slots; slot++) {
      const found =
        this.#found === settles ? this.#foundSlot : this.#index.find(this.#id.load(settles.id, slot));
      if (found < 0) return;
      this.#drop(found);
    }
  }

  /**
   * Lists the holds of a bucket that expire first, up to `most` of them. `more` also counts expired holds that {@link
   * expire} has not removed yet.
   */
  list({ key, rate }: Pick<HeldBucket, 'key' | 'rate'>, most: number): ListedHolds {
    const nowMicros = this.#monotonicMicros();
    this.expire(nowMicros);
    // Removes the expired holds from the queues.
    this.#oldestSlot(key, nowMicros);
    const set = this.#sets.get(key);
    const frees = set?.bucket !== undefined;
    const found = set?.queues.flatMap((queue) => this.#listQueue(queue, frees, most, nowMicros)) ?? [];
    const holds = found.sort((one, other) => one.remainingMicros - other.remainingMicros).slice(0, most);
    return { holds, more: (set?.count ?? 0) - storedCount(holds, rate) };
  }

  /** Lists the first holds of a queue. The number of slots that it visits is bounded. */
  #listQueue(
    { first, lifetimeMillis }: HoldQueue,
    freesUnknown: boolean,
    most: number,
    nowMicros: number,
  ): StoredHold[] {
    const holds: StoredHold[] = [];
    let slot = first;
    for (
      let visited = 0;
      slot >= 0 && holds.length < most && visited < most + MAX_SLOTS_PER_ITEM;
      visited++
    ) {
      const amount = this.#records.amountOf(slot);
      if (amount > 0) {
        holds.push({
          id: this.#records.idOf(slot),
          amount,
          lifetimeMillis,
          fullAtMicros: this.#records.fullAtMicrosOf(slot),
          refillMicros: this.#records.refillMicrosOf(slot),
          freesUnknown,
          remainingMicros: this.#heap.keyOf(slot) - nowMicros,
        });
      }
      slot = this.#records.afterOf(slot);
    }
    return holds;
  }

  #find(key: string): HoldSet | undefined {
    if (key !== this.#lastKey) {
      this.#lastKey = key;
      this.#lastSet = this.#sets.get(key);
    }
    return this.#lastSet;
  }

  #createSet(key: string, lifetimeMillis: number): HoldSet {
    const number = this.#freeNumbers.pop() ?? this.#setsByNumber.length;
    const queues = [new HoldQueue(this.#records, lifetimeMillis)];
    const set: HoldSet = { key, number, count: 0, bucket: undefined, queues };
    this.#setsByNumber[number] = set;
    this.#sets.set(key, set);
    this.#lastKey = key;
    this.#lastSet = set;
    this.#setBytes += setBytes(key);
    return set;
  }

  #setOf(slot: Slot): HoldSet {
    return this.#setsByNumber[this.#records.setOf(slot)] as HoldSet;
  }

  #queueOf({ queues }: HoldSet, lifetimeMillis: number): HoldQueue {
    for (let i = 0; i < queues.length; i++) {
      const queue = queues[i] as HoldQueue;
      if (queue.lifetimeMillis === lifetimeMillis) return queue;
    }
    const queue = new HoldQueue(this.#records, lifetimeMillis);
    queues.push(queue);
    return queue;
  }

  #holdAt(slot: Slot): OldestHold {
    return {
      takenMicros: this.#takenMicrosAt(slot),
      amount: this.#records.amountOf(slot),
      fullAtMicros: this.#records.fullAtMicrosOf(slot),
      refillMicros: this.#records.refillMicrosOf(slot),
    };
  }

  #takenMicrosAt(slot: Slot): number {
    return this.#records.takenMicrosOf(slot, this.#heap.keyOf(slot));
  }

  /**
   * Returns the slot of the hold in a bucket that expires first, or -1. Removes expired holds that {@link expire} has
   * not removed yet from their queue, so that each of them is skipped only once.
   */
  #oldestSlot(key: string, nowMicros: number): Slot {
    const queues = this.#find(key)?.queues ?? [];
    let oldest = -1;
    for (const queue of queues) {
      while (queue.first >= 0 && this.#heap.keyOf(queue.first) <= nowMicros) queue.remove(queue.first);
      if (queue.first < 0) continue;
      if (oldest < 0 || this.#heap.keyOf(queue.first) < this.#heap.keyOf(oldest)) oldest = queue.first;
    }
    return oldest;
  }

  #drop(slot: Slot): void {
    this.#found = undefined;
    const set = this.#setOf(slot);
    const queue = this.#queueOf(set, this.#records.lifetimeOf(slot));
    queue.remove(slot);
    if (queue.first < 0 && set.queues.length > 1) set.queues.splice(set.queues.indexOf(queue), 1);
    checkInvariant(set.count > 0, 'the set of a hold is not empty');
    if (--set.count === 0) {
      this.#sets.delete(set.key);
      if (this.#lastSet === set) this.#lastSet = undefined;
      this.#setsByNumber[set.number] = undefined;
      this.#freeNumbers.push(set.number);
      this.#setBytes -= setBytes(set.key);
    }
    this.#index.remove(slot);
    this.size--;
    this.#heap.remove(slot);
    const moved = this.#records.remove(slot);
    if (moved < 0) return;
    this.#index.moved(moved, slot);
    this.#heap.renumbered(slot);
    this.#queueOf(this.#setOf(slot), this.#records.lifetimeOf(slot)).renumbered(slot, moved);
  }
}

function setBytes(key: string): number {
  return SET_BYTES + 2 * key.length;
}

/**
 * The holds of one bucket with one lifetime, in the order in which they were placed, which is the order in which they
 * expire.
 */
class HoldQueue {
  readonly lifetimeMillis: number;
  first: Slot = -1;
  last: Slot = -1;
  readonly #records: HoldRecords;

  constructor(records: HoldRecords, lifetimeMillis: number) {
    this.#records = records;
    this.lifetimeMillis = lifetimeMillis;
  }

  /** Appends a hold. */
  push(slot: Slot): void {
    this.#records.setBefore(slot, this.last);
    this.#records.setAfter(slot, -1);
    if (this.last < 0) this.first = slot;
    else this.#records.setAfter(this.last, slot);
    this.last = slot;
  }

  /** Removes a hold if it is in the queue. */
  remove(slot: Slot): void {
    if (!this.#has(slot)) return;
    const before = this.#records.beforeOf(slot);
    const after = this.#records.afterOf(slot);
    this.#link(before, after);
    this.#records.setBefore(slot, -1);
    this.#records.setAfter(slot, -1);
  }

  /** Records that a hold has a new number. */
  renumbered(slot: Slot, from: Slot): void {
    const isFirst = this.first === from;
    const isLast = this.last === from;
    const before = this.#records.beforeOf(slot);
    const after = this.#records.afterOf(slot);
    if (isFirst) this.first = slot;
    if (isLast) this.last = slot;
    if (before >= 0) this.#records.setAfter(before, slot);
    if (after >= 0) this.#records.setBefore(after, slot);
  }

  /** Returns whether a hold is in the queue. A hold without neighbors may have been removed. */
  #has(slot: Slot): boolean {
    return this.first === slot || this.#records.beforeOf(slot) >= 0;
  }

  #link(before: Slot, after: Slot): void {
    if (before < 0) this.first = after;
    else this.#records.setAfter(before, after);
    if (after < 0) this.last = before;
    else this.#records.setBefore(after, before);
  }
}
