import type { TakeItem, TakeOutcome } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import type { DerivedRates } from '../../limiter/local-rate.js';
import { OwedHits } from '../../limiter/owed-hits.js';
import type { Rate } from '../../limiter/rate.js';

/** Maximum number of records that one {@link OwedLedger.takeOut} reads. */
const MAX_SCANNED_RECORDS = 512;
/** Estimated bytes of a record without its name. */
const RECORD_BYTES = 480;
/** Number of records that each insertion checks, so that paid records are removed without a timer. */
const SWEEP_PER_RECORD = 2;

/** The hits that weir owes one bucket of the store. */
interface OwedBucket {
  readonly key: string;
  readonly tagLength: number;
  readonly rate: Rate;
  readonly hits: OwedHits;
  /** Whether it is a window in which local holds were placed. Settlements can change what was allowed. */
  readonly isKept: boolean;
  /** `TakeOutcome.undoMark` of its charges; undefined before the first one. */
  undoMark: number | undefined;
}

/** A take that charges the store for a bucket's owed hits, or a refund of hits that were charged. */
export interface OwedCharge {
  readonly item: TakeItem;
  readonly bucket: OwedBucket;
}

/** Settings of {@link OwedLedger}. */
export interface OwedLedgerOptions {
  readonly clock: Clock;
  readonly rates: DerivedRates;
  /** Maximum number of buckets. */
  readonly maxBuckets: number;
  /** Maximum estimated bytes. */
  readonly maxBytes: number;
}

/**
 * The hits that were allowed without the store, by bucket, until the store is charged. Bounded: the bucket that has
 * been unused for the longest time is removed first.
 */
export class OwedLedger {
  /** Number of records that were removed because of the bounds, or given up, since start. */
  forgotten = 0;
  /** Number of records whose bucket had refilled before it was charged, since start. */
  lapsed = 0;
  bytes = 0;
  readonly #options: OwedLedgerOptions;
  /** Records in the order of their last use. */
  readonly #buckets = new Map<string, OwedBucket>();
  /** Records of windows that owe nothing now, but may be owed hits after a settlement. */
  readonly #kept = new Map<string, OwedBucket>();

  constructor(options: OwedLedgerOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Records an item that a bucket of `local`, this process's share of the item's rate, allowed or refunded. */
  note({ key, tagLength, rate, hits, refund, holds }: TakeItem, local: Rate): void {
    let bucket = this.#recordOf(key);
    const nowMicros = this.#nowOf(rate);
    const isKept = bucket?.isKept === true || (holds !== undefined && rate.kind === 'window');
    // A refund of hits from before the first recorded hit must not reach the store.
    if (bucket === undefined && refund) return;
    if (bucket?.rate !== rate || bucket.isKept !== isKept) {
      const owed = new OwedHits(rate, local, nowMicros);
      if (bucket !== undefined) owed.merge(bucket.hits, nowMicros);
      bucket = { key, tagLength, rate, hits: owed, isKept, undoMark: bucket?.undoMark };
    }
    bucket.hits.add(hits, refund, nowMicros);
    this.#keep(bucket);
  }

  /**
   * Removes up to `count` records that still owe hits, among the first few hundred records, and returns their charges.
   */
  takeOut(count: number): readonly OwedCharge[] {
    const charges: OwedCharge[] = [];
    let scanned = 0;
    for (const bucket of this.#buckets.values()) {
      if (charges.length === count || scanned++ === MAX_SCANNED_RECORDS) break;
      this.#drop(bucket);
      const { key, tagLength, rate, undoMark } = bucket;
      const owed = bucket.hits.owed(this.#nowOf(rate));
      // The charge counts as paid at once, because settlements may arrive before the reply.
      if (bucket.isKept) this.#keepPaid(bucket, owed);
      if (owed === 0) {
        if (!bucket.isKept) this.lapsed++;
        continue;
      }
      const charging = this.#options.rates.charging(rate);
      const refund = owed < 0;
      const mark = refund && undoMark !== undefined ? { undoMark } : {};
      const hits = Math.abs(owed);
      const item = { key, tagLength, rate: charging, hits, refund, enforcement: 'observe', ...mark } as const;
      charges.push({ item, bucket });
    }
    return charges;
  }

  /** Notes the reply to a charge. */
  charged({ item, bucket }: OwedCharge, { forgiven, undoMark }: TakeOutcome): void {
    const record = bucket.isKept ? this.#recordOf(item.key) : undefined;
    if (record === undefined) return;
    record.undoMark = undoMark;
    record.hits.pay(-forgiven, this.#nowOf(record.rate));
  }

  /** Drops the records of windows that owe nothing, because no local hold is left. */
  forgetPaid(): void {
    for (const bucket of this.#kept.values()) this.#drop(bucket);
  }

  /** Restores a record whose charge failed. */
  putBack({ bucket, item }: OwedCharge): void {
    if (bucket.isKept) {
      const record = this.#recordOf(item.key);
      if (record === undefined) return;
      record.hits.pay(item.refund ? item.hits : -item.hits, this.#nowOf(record.rate));
      this.#keep(record);
      return;
    }
    const since = this.#buckets.get(bucket.key);
    if (since === undefined) this.#keep(bucket);
    else since.hits.merge(bucket.hits, this.#nowOf(since.rate));
  }

  /**
   * Gives up all records, and `more` records that {@link takeOut} has removed. Returns the number of records given up.
   */
  giveUp(more: number): number {
    const left = this.#buckets.size + more;
    this.#buckets.clear();
    this.#kept.clear();
    this.bytes = 0;
    this.forgotten += left;
    return left;
  }

  #recordOf(key: string): OwedBucket | undefined {
    return this.#buckets.get(key) ?? this.#kept.get(key);
  }

  #keep(bucket: OwedBucket): void {
    const known = this.#recordOf(bucket.key);
    if (known === undefined) {
      this.#sweep();
      this.#makeRoom(bytesOf(bucket));
    } else this.#drop(known);
    this.#buckets.set(bucket.key, bucket);
    this.bytes += bytesOf(bucket);
  }

  /** Keeps the record of a window that pays what it owes. */
  #keepPaid(bucket: OwedBucket, owed: number): void {
    const nowMicros = this.#nowOf(bucket.rate);
    bucket.hits.pay(owed, nowMicros);
    // Records of windows that have ended are first.
    for (const kept of this.#kept.values()) {
      if (kept.hits.isPaid(nowMicros)) break;
      this.#drop(kept);
    }
    this.#kept.set(bucket.key, bucket);
    this.bytes += bytesOf(bucket);
  }

  #makeRoom(bytes: number): void {
    const { maxBuckets, maxBytes } = this.#options;
    const isFull = (): boolean => this.size + this.#kept.size >= maxBuckets || this.bytes + bytes > maxBytes;
    for (const bucket of this.#kept.values()) {
      if (!isFull()) return;
      this.#drop(bucket);
    }
    for (const bucket of this.#buckets.values()) {
      if (!isFull()) return;
      this.#drop(bucket);
      this.forgotten++;
    }
  }

  #sweep(): void {
    let scanned = 0;
    for (const bucket of this.#buckets.values()) {
      if (scanned++ === SWEEP_PER_RECORD || bucket.hits.owed(this.#nowOf(bucket.rate)) !== 0) return;
      this.#drop(bucket);
      this.lapsed++;
    }
  }

  #drop(bucket: OwedBucket): void {
    if (this.#buckets.delete(bucket.key) || this.#kept.delete(bucket.key)) this.bytes -= bytesOf(bucket);
  }

  #nowOf(rate: Rate): number {
    const { clock } = this.#options;
    return rate.byWallClock ? clock.wallMicros() : clock.monotonicMicros();
  }
}

function bytesOf({ key }: OwedBucket): number {
  return RECORD_BYTES + key.length;
}
