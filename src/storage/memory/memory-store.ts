import type { BucketStore, Take, TakeOutcome } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import { decide, outcomeOf } from '../../limiter/decide.js';
import { freesExpired, type HoldValues, placeableHold, type SettledHold } from '../../limiter/holds/hold.js';
import {
  type HeldBucket,
  type HoldInspector,
  type ListedHolds,
  mergedHolds,
} from '../../limiter/holds/hold-inspector.js';
import { settlementOperation } from '../../limiter/holds/settlement.js';
import type { Rate } from '../../limiter/rate.js';
import { RunningBucket, TakeSnapshot } from '../../limiter/running-bucket.js';
import { BucketTable } from './bucket-table.js';
import { type FreedBucket, HoldTable, type OldestHold } from './hold-table.js';
import type { Slot } from './record-arena.js';

/** Settings of {@link MemoryStore}. */
export interface MemoryStoreOptions {
  /** Token buckets use its monotonic time, windows its wall time. */
  readonly clock: Clock;
  /** Maximum number of buckets (MEMORY_MAX_BUCKETS). */
  readonly maxBuckets: number;
  /** Maximum estimated bytes of buckets and holds (MEMORY_MAX_BYTES). Holds use at most a quarter. */
  readonly maxBytes: number;
  /** Whether windows count the hits of denied requests, as in envoyproxy/ratelimit. */
  readonly countDeniedHits: boolean;
  /** Called for each hold that does not fit into the memory for holds. */
  readonly onHoldRefused?: () => void;
}

/** Share of the bytes that holds may use. */
const HOLDS_SHARE = 1 / 4;

/** Maximum number of items that are compared pairwise to find repeated keys; larger requests use maps. */
const MAX_COMPARED_ITEMS = 8;

/**
 * Buckets in this process. Synchronous, without a promise or closure for each request. If it is full, it evicts the
 * bucket that will be full soonest, and counts it in `evictions`.
 */
export class MemoryStore implements BucketStore, HoldInspector {
  /**
   * Number of holds since the start for which there was no memory. The items that should have placed them are limited.
   */
  refusedHolds = 0;
  private readonly clock: Clock;
  private readonly countDeniedHits: boolean;
  private readonly onHoldRefused: (() => void) | undefined;
  private readonly table: BucketTable;
  private readonly holds: HoldTable;
  // Scratch space of one request; reused.
  private readonly pool: RunningBucket[] = [];
  private readonly buckets: RunningBucket[] = [];
  /** Slot of each item's bucket, or -1 if it is not stored. */
  private readonly slots: Slot[] = [];
  /**
   * For requests with many items, the index of the first item with each key, by the hash of the key. A map by key would
   * hash each key once more, which takes 2 µs for a long one.
   */
  private readonly firstItems = new Map<number, number>();
  private readonly findings: TakeSnapshot[] = [];
  private readonly givenBack = new RunningBucket();

  constructor(options: MemoryStoreOptions) {
    this.clock = options.clock;
    this.countDeniedHits = options.countDeniedHits;
    this.onHoldRefused = options.onHoldRefused;
    const { clock, maxBuckets, maxBytes } = options;
    const holds = new HoldTable(
      maxBytes * HOLDS_SHARE,
      () => clock.monotonicMicros(),
      (bucket, hold, sinceMicros) => this.giveBack(bucket, hold, sinceMicros),
    );
    this.holds = holds;
    this.table = new BucketTable({ clock, maxBuckets, maxBytes, otherBytes: () => holds.bytes });
  }

  /** Number of buckets now. */
  get size(): number {
    return this.table.size;
  }

  /** Estimated bytes of the buckets and holds. */
  get bytes(): number {
    return this.table.bytes + this.holds.bytes;
  }

  /** Number of buckets evicted before they were full, since start. */
  get evictions(): number {
    return this.table.evictions;
  }

  /** Number of slots and reservations that exist now. */
  get holdCount(): number {
    return this.holds.size;
  }

  hasHolds(): boolean {
    this.holds.expire(this.clock.monotonicMicros());
    return this.holds.size > 0;
  }

  take(takes: readonly Take[]): readonly TakeOutcome[] {
    const tokenMicros = this.clock.monotonicMicros();
    const windowMicros = needsWallClock(takes) ? this.clock.wallMicros() : 0;
    const { buckets, findings } = this;
    if (this.holds.size > 0) this.holds.expire(tokenMicros);
    this.load(takes, tokenMicros);
    decide(takes, buckets, findings, tokenMicros, windowMicros, this.countDeniedHits);
    // Most requests have one item.
    if (takes.length === 1) return [this.keep(takes[0] as Take, 0, tokenMicros, windowMicros)];
    const outcomes = new Array<TakeOutcome>(takes.length);
    for (let i = 0; i < takes.length; i++) {
      outcomes[i] = this.keep(takes[i] as Take, i, tokenMicros, windowMicros);
    }
    return outcomes;
  }

  async listHolds(bucket: HeldBucket, most: number): Promise<ListedHolds> {
    const { rate } = bucket;
    const sets = allHoldsKeys(bucket).map((key) => this.holds.list({ key, rate }, most));
    return mergedHolds(sets, bucket, most);
  }

  async hasHold(bucket: HeldBucket, hold: HoldValues): Promise<boolean> {
    return allHoldsKeys(bucket).some((key) => this.holds.takenMicrosOf(key, hold) >= 0);
  }

  async close(): Promise<void> {}

  /** Stores the change of an item, and returns its outcome. */
  private keep(take: Take, i: number, tokenMicros: number, windowMicros: number): TakeOutcome {
    const { key, rate } = take;
    const bucket = this.buckets[i] as RunningBucket;
    if (rate.kind !== 'concurrency' && bucket.dirty) {
      this.table.write(key, bucket, i, tokenMicros, this.slots[i]);
      bucket.dirty = false;
    }
    const nowMicros = rate.nowOf(tokenMicros, windowMicros);
    const outcome = outcomeOf(take, this.findings[i] as TakeSnapshot, nowMicros);
    if (outcome.hold !== undefined) this.keepHold(take, outcome, nowMicros, tokenMicros);
    return outcome;
  }

  /** Returns the bytes for the hold of an item; -1 if it does not fit in addition to `reserved` bytes. */
  private bytesForHold(take: Take, reserved: number): number {
    const { rate, hits } = take;
    const key = holdsKey(take);
    const slots = slotsOf(rate, hits);
    if (this.holds.hasRoomFor(key, slots, reserved)) return this.holds.bytesOf(key, slots);
    this.refusedHolds++;
    this.onHoldRefused?.();
    return -1;
  }

  private keepHold(take: Take, outcome: TakeOutcome, nowMicros: number, tokenMicros: number): void {
    const { key, rate, hits, holds, settles } = take;
    if (outcome.hold === 'placed' && holds !== undefined) {
      const set = holdsKey(take);
      const slots = slotsOf(rate, hits);
      const { fullAtMicros = 0, refillMicros } = outcome;
      this.holds.add(set, holds, { amount: hits, fullAtMicros, refillMicros }, nowMicros, slots, tokenMicros);
      if (set !== key) this.holds.refundTo(set, take);
    }
    if (outcome.hold !== 'settled' || settles === undefined) return;
    if (settles === 'oldest') this.holds.settleOldest(key, tokenMicros);
    else this.holds.settle(settles, slotsOf(rate, settles.amount));
  }

  /** Settles a hold with a use of 0 at the time at which it expired. `sinceMicros` have passed since. */
  private giveBack({ key, rate }: FreedBucket, hold: OldestHold, sinceMicros: number): void {
    const bucket = this.givenBack;
    const slot = this.table.read(key, bucket, 0);
    if (slot < 0) return;
    const tokenMicros = this.clock.monotonicMicros();
    const windowMicros = rate.byWallClock ? this.clock.wallMicros() : 0;
    const { amount, fullAtMicros, takenMicros } = hold;
    // The bucket keeps all tokens that have refilled since the hold expired.
    const held = { ...hold, fullAtMicros: fullAtMicros + sinceMicros };
    const refund = settlementOperation({ rate, hits: amount, refund: true }, held, takenMicros);
    rate.take(bucket, refund, rate.nowOf(tokenMicros, windowMicros), this.countDeniedHits);
    if (!bucket.dirty) return;
    rate.toStoredForm(bucket, windowMicros);
    this.table.write(key, bucket, 0, tokenMicros, slot);
  }

  /** Fills `buckets` with the stored states, one object for each distinct key. */
  private load(takes: readonly Take[], tokenMicros: number): void {
    const { pool, buckets, slots, table, findings } = this;
    while (findings.length < takes.length) findings.push(new TakeSnapshot());
    const many = takes.length > MAX_COMPARED_ITEMS;
    // Bytes for the holds of earlier items, which are added after the decision.
    let reserved = 0;
    for (let i = 0; i < takes.length; i++) {
      const take = takes[i] as Take;
      const { key, rate, settles } = take;
      let bucket = many ? undefined : this.findEarlier(takes, i);
      if (bucket === undefined) {
        bucket = pool[i] ??= new RunningBucket();
        if (rate.kind === 'concurrency') {
          // A settlement does not report the slots in use.
          bucket.load(0, 0, settles !== undefined && takes.length === 1 ? 0 : this.holds.countOf(key));
          slots[i] = -1;
        } else slots[i] = table.read(key, bucket, i);
        if (many) bucket = this.firstSeen(takes, i, bucket);
      } else slots[i] = -1;
      buckets[i] = bucket;
      const finding = findings[i] as TakeSnapshot;
      if (settles !== undefined) this.findHold(holdsKey(take), settles, tokenMicros, finding);
      if (take.holds === undefined || placeableHold(take) === undefined) continue;
      const bytes = this.bytesForHold(take, reserved);
      finding.holdFits = bytes >= 0;
      reserved += Math.max(0, bytes);
    }
    if (many) this.firstItems.clear();
  }

  /** Records the hold that an item settles. */
  private findHold(key: string, settles: SettledHold, nowMicros: number, finding: TakeSnapshot): void {
    if (settles !== 'oldest') {
      finding.takenMicros = this.holds.takenMicrosOf(key, settles, nowMicros);
      return;
    }
    const oldest = this.holds.oldestOf(key, nowMicros);
    finding.takenMicros = oldest?.takenMicros ?? -1;
    if (oldest !== undefined) finding.held = oldest;
  }

  /** Returns the bucket of the first item with the key of item `index`, or `bucket` if this is the first one. */
  private firstSeen(takes: readonly Take[], index: number, bucket: RunningBucket): RunningBucket {
    const { key } = takes[index] as Take;
    // The first items of different keys with the same hash are stored under the next numbers.
    for (let hash = this.table.hashOf(key, index); ; hash++) {
      const first = this.firstItems.get(hash);
      if (first === undefined) {
        this.firstItems.set(hash, index);
        return bucket;
      }
      if ((takes[first] as Take).key === key) return this.buckets[first] as RunningBucket;
    }
  }

  /** Returns the bucket of an earlier item with the same key. */
  private findEarlier(takes: readonly Take[], index: number): RunningBucket | undefined {
    const { key } = takes[index] as Take;
    for (let i = 0; i < index; i++) if ((takes[i] as Take).key === key) return this.buckets[i];
    return undefined;
  }
}

/**
 * Returns the name of the set that contains an item's holds. Holds whose hits are returned when they expire are in a
 * separate set.
 */
function holdsKey(take: Take): string {
  return freesExpired(take) ? freedKey(take.key) : take.key;
}

/** Returns the names of all sets that contain holds of a bucket. */
function allHoldsKeys({ key, rate }: HeldBucket): readonly string[] {
  return rate.kind === 'concurrency' ? [key] : [key, freedKey(key)];
}

function freedKey(key: string): string {
  return `${key}%freed`;
}

/** Returns the number of holds that are stored for a hold of `hits`. */
function slotsOf(rate: Rate, hits: number): number {
  return rate.kind === 'concurrency' ? hits : 1;
}

/** Returns whether the wall clock must be read, which only windows need. */
function needsWallClock(takes: readonly Take[]): boolean {
  for (let i = 0; i < takes.length; i++) if ((takes[i] as Take).rate.byWallClock) return true;
  return false;
}
