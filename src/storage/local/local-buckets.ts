import type {
  BucketStore,
  LocalStore,
  LocalTake,
  TakeItem,
  TakeOutcome,
} from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import { deniesRequest } from '../../limiter/decide.js';
import { shareOf } from '../../limiter/failure-policy.js';
import { DerivedRates } from '../../limiter/local-rate.js';
import type { MemoryStore } from '../memory/memory-store.js';
import { OwedLedger } from './owed-ledger.js';
import { Repayment } from './repayment.js';

/** Redis decides again for this long: local buckets are forgotten. */
const FORGET_MICROS = 5_000_000;
/** Most buckets that what they owe is kept of, and most bytes that this takes, by an estimate. */
export const MAX_OWED_BUCKETS = 100_000;
export const MAX_OWED_BYTES = 64 * 1024 * 1024;

/** Settings of {@link LocalBuckets}. */
export interface LocalBucketsOptions {
  /** Makes an empty store in memory. */
  readonly newStore: () => MemoryStore;
  readonly clock: Clock;
  /** Processes of this replica, which divide its shares among them. */
  readonly workers: number;
  /** Bounds of MEMORY_MAX_BUCKETS and MEMORY_MAX_BYTES, which hold for what is owed, too. */
  readonly maxBuckets: number;
  readonly maxBytes: number;
  /** What the buckets stand in for, without a cache before it. */
  readonly store: BucketStore;
  /** Whether it decides, all of it; and whether some of it does. */
  readonly up: () => boolean;
  readonly anyUp: () => boolean;
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

/** What became of hits that were admitted without the store; read when metrics are scraped. */
export interface LocalChargeStats {
  /** Buckets that are to be charged. */
  readonly waiting: number;
  /** Buckets charged since start. */
  readonly charged: number;
  /** Those whose hits were refilled by then. */
  readonly lapsed: number;
  /** Those given up: beyond the bounds, or at the end of the process. */
  readonly forgotten: number;
}

/**
 * Buckets in memory that stand in for Redis's (`on_store_failure: local`), each with this process's part of the limit.
 * What they admit is charged in Redis when it is back. The next outage starts with full ones, but a Redis that comes
 * and goes must not fill them again and again.
 */
export class LocalBuckets implements LocalStore {
  memory: MemoryStore;
  readonly #options: LocalBucketsOptions;
  readonly #rates: DerivedRates;
  readonly #ledger: OwedLedger;
  readonly #repayment: Repayment;
  readonly #forgetting: NodeJS.Timeout;
  #usedAtMicros = Number.NEGATIVE_INFINITY;
  #closed = false;

  constructor(options: LocalBucketsOptions) {
    const { newStore, clock, workers, maxBuckets, maxBytes, up, anyUp, store, log } = options;
    this.#options = options;
    this.memory = newStore();
    this.#rates = new DerivedRates(workers);
    this.#ledger = new OwedLedger({
      clock,
      rates: this.#rates,
      maxBuckets: Math.min(maxBuckets, MAX_OWED_BUCKETS),
      maxBytes: Math.min(maxBytes, MAX_OWED_BYTES),
    });
    this.#repayment = new Repayment({ ledger: this.#ledger, store, up: anyUp, clock, log });
    this.#forgetting = setInterval(() => {
      const quiet = clock.monotonicMicros() - this.#usedAtMicros > FORGET_MICROS;
      if (up() && quiet && this.memory.size > 0) this.memory = newStore();
    }, FORGET_MICROS / 1000).unref();
  }

  get stats(): LocalChargeStats {
    const { size, lapsed, forgotten } = this.#ledger;
    const { charged, unanswered } = this.#repayment;
    // What was given up is not answered, either.
    const waiting = this.#closed ? 0 : size + unanswered;
    return { waiting, charged, lapsed, forgotten };
  }

  /** The store, or a part of it, is up (again). */
  storeIsUp(): void {
    this.#repayment.begin();
  }

  /** The outcomes tell of the whole limit, and that as much of it is left as this process may still admit. */
  take(items: readonly LocalTake[]): readonly TakeOutcome[] {
    this.#usedAtMicros = this.#options.clock.monotonicMicros();
    const parts = items.map((item) => this.#partOf(item));
    const outcomes = this.memory.take(parts);
    if (!deniesRequest(items, outcomes)) this.#note(items, parts, outcomes);
    return outcomes.map((outcome, i) => {
      const missing = reported(items[i]) - reported(parts[i]);
      return missing === 0 ? outcome : { ...outcome, used: outcome.used + missing };
    });
  }

  /** Tries for half a second to charge what is owed. */
  async close(): Promise<void> {
    clearInterval(this.#forgetting);
    await this.#repayment.close();
    this.#closed = true;
    await this.memory.close();
  }

  #partOf({ key, tagLength, rate, hits, refund, enforcement, onStoreFailure }: LocalTake): TakeItem {
    const local = this.#rates.local(rate, shareOf(onStoreFailure));
    return { key, tagLength, rate: local, hits, refund, enforcement };
  }

  #note(items: readonly LocalTake[], parts: readonly TakeItem[], outcomes: readonly TakeOutcome[]): void {
    for (let i = 0; i < items.length; i++) {
      const item = items[i] as LocalTake;
      // What is limited took nothing.
      if (item.hits === 0 || (outcomes[i] as TakeOutcome).limited) continue;
      this.#ledger.note(item, (parts[i] as TakeItem).rate);
    }
    if (this.#ledger.size > 0) this.#repayment.expect();
  }
}

function reported(item: TakeItem | undefined): number {
  return item?.rate.reportedLimit ?? 0;
}
