import type { TakeItem } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import type { DerivedRates } from '../../limiter/local-rate.js';
import { OwedHits } from '../../limiter/owed-hits.js';
import type { Rate } from '../../limiter/rate.js';

/** Records looked at for one {@link OwedLedger.takeOut}. */
const MAX_SCANNED_RECORDS = 512;
/** Estimated bytes of a record without its name. */
const RECORD_BYTES = 480;
/** Records looked at for each new one, so that those that owe nothing any more leave without a timer. */
const SWEEP_PER_RECORD = 2;

/** What one bucket of the store is owed. */
interface OwedBucket {
  readonly key: string;
  readonly tagLength: number;
  readonly rate: Rate;
  readonly hits: OwedHits;
}

/** A take from the store that pays what its bucket is owed, as far as there is something to take. */
export interface OwedCharge {
  readonly item: TakeItem;
  readonly bucket: OwedBucket;
}

/** Settings of {@link OwedLedger}. */
export interface OwedLedgerOptions {
  readonly clock: Clock;
  readonly rates: DerivedRates;
  /** Most buckets that something is kept of. */
  readonly maxBuckets: number;
  /** Most bytes that this may take, estimated. */
  readonly maxBytes: number;
}

/**
 * What was admitted without the store, by bucket, until it is charged there. Bounded: past the bounds the bucket goes
 * that nothing was taken from for the longest time.
 */
export class OwedLedger {
  /** Records that went because of the bounds, or were given up, since start. */
  forgotten = 0;
  /** Records that owed nothing any more, since start. */
  lapsed = 0;
  bytes = 0;
  readonly #options: OwedLedgerOptions;
  /** Those taken from last are the last. */
  readonly #buckets = new Map<string, OwedBucket>();

  constructor(options: OwedLedgerOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** `item` was admitted, or its refund taken, by a bucket of `local`, this process's part of the item's rate. */
  note({ key, tagLength, rate, hits, refund }: TakeItem, local: Rate): void {
    let bucket = this.#buckets.get(key);
    const nowMicros = this.#nowOf(rate);
    // What was admitted before the first hit that is kept is not to be given back to the store.
    if (bucket === undefined && refund) return;
    if (bucket?.rate !== rate) {
      const owed = new OwedHits(rate, local, nowMicros);
      if (bucket !== undefined) owed.merge(bucket.hits, nowMicros);
      bucket = { key, tagLength, rate, hits: owed };
    }
    bucket.hits.add(hits, refund, nowMicros);
    this.#keep(bucket);
  }

  /** Takes out up to `count` records that owe something, of the first few hundred, and says what to charge. */
  takeOut(count: number): readonly OwedCharge[] {
    const charges: OwedCharge[] = [];
    let looks = 0;
    for (const bucket of this.#buckets.values()) {
      if (charges.length === count || looks++ === MAX_SCANNED_RECORDS) break;
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

  /** What was taken out could not be charged. */
  putBack({ bucket }: OwedCharge): void {
    const since = this.#buckets.get(bucket.key);
    if (since === undefined) this.#keep(bucket);
    else since.hits.merge(bucket.hits, this.#nowOf(since.rate));
  }

  /** Gives up what is left, and `more` that were taken out. Returns how many records those were. */
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
      while (this.size > 0 && (this.size >= maxBuckets || this.bytes + bytes > maxBytes)) this.#forgetFirst();
    } else this.#drop(known);
    this.#buckets.set(bucket.key, bucket);
    this.bytes += bytesOf(bucket);
  }

  #sweep(): void {
    let looks = 0;
    for (const bucket of this.#buckets.values()) {
      if (looks++ === SWEEP_PER_RECORD || bucket.hits.owed(this.#nowOf(bucket.rate)) > 0) return;
      this.#drop(bucket);
      this.lapsed++;
    }
  }

  #forgetFirst(): void {
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
