import type { TakeItem } from '../../limiter/bucket-store.js';
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
}

/** A take that charges the store for a bucket's owed hits. */
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

  constructor(options: OwedLedgerOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Records an item that a bucket of `local`, this process's share of the item's rate, allowed or refunded. */
  note({ key, tagLength, rate, hits, refund }: TakeItem, local: Rate): void {
    let bucket = this.#buckets.get(key);
    const nowMicros = this.#nowOf(rate);
    // A refund of hits from before the first recorded hit must not reach the store.
    if (bucket === undefined && refund) return;
    if (bucket?.rate !== rate) {
      const owed = new OwedHits(rate, local, nowMicros);
      if (bucket !== undefined) owed.merge(bucket.hits, nowMicros);
      bucket = { key, tagLength, rate, hits: owed };
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
      const { key, tagLength, rate } = bucket;
      const hits = bucket.hits.owed(this.#nowOf(rate));
      if (hits === 0) {
        this.lapsed++;
        continue;
      }
      const charging = this.#options.rates.charging(rate);
      const item = { key, tagLength, rate: charging, hits, refund: false, enforcement: 'observe' } as const;
      charges.push({ item, bucket });
    }
    return charges;
  }

  /** Restores a record whose charge failed. */
  putBack({ bucket }: OwedCharge): void {
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
    this.bytes = 0;
    this.forgotten += left;
    return left;
  }

  #keep(bucket: OwedBucket): void {
    const { maxBuckets, maxBytes } = this.#options;
    const known = this.#buckets.get(bucket.key);
    if (known === undefined) {
      this.#sweep();
      const bytes = bytesOf(bucket);
      while (this.size > 0 && (this.size >= maxBuckets || this.bytes + bytes > maxBytes))
        this.#removeOldest();
    } else this.#drop(known);
    this.#buckets.set(bucket.key, bucket);
    this.bytes += bytesOf(bucket);
  }

  #sweep(): void {
    let scanned = 0;
    for (const bucket of this.#buckets.values()) {
      if (scanned++ === SWEEP_PER_RECORD || bucket.hits.owed(this.#nowOf(bucket.rate)) > 0) return;
      this.#drop(bucket);
      this.lapsed++;
    }
  }

  #removeOldest(): void {
    for (const bucket of this.#buckets.values()) {
      this.#drop(bucket);
      this.forgotten++;
      return;
    }
  }

  #drop(bucket: OwedBucket): void {
    if (this.#buckets.delete(bucket.key)) this.bytes -= bytesOf(bucket);
  }

  #nowOf(rate: Rate): number {
    const { clock } = this.#options;
    return rate.byWallClock ? clock.wallMicros() : clock.monotonicMicros();
  }
}

function bytesOf({ key }: OwedBucket): number {
  return RECORD_BYTES + key.length;
}
