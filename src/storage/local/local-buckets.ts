import type {
  BucketStore,
  LocalStore,
  LocalTake,
  TakeItem,
  TakeOutcome,
} from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import { deniesRequest, isSkipped } from '../../limiter/decide.js';
import { shareOf } from '../../limiter/failure-policy.js';
import { correctionOf } from '../../limiter/holds/settlement.js';
import { DerivedRates } from '../../limiter/local-rate.js';
import type { MemoryStore } from '../memory/memory-store.js';
import { OwedLedger } from './owed-ledger.js';
import { Repayment } from './repayment.js';

/** Time without use after which local buckets are deleted, if Redis is available. */
const FORGET_MICROS = 5_000_000;
/** Maximum number of buckets in the ledger of owed hits, and its maximum estimated bytes. */
export const MAX_OWED_BUCKETS = 100_000;
export const MAX_OWED_BYTES = 64 * 1024 * 1024;

/** Settings of {@link LocalBuckets}. */
export interface LocalBucketsOptions {
  /** Returns an empty store in memory. */
  readonly newStore: () => MemoryStore;
  readonly clock: Clock;
  /** Number of processes of this replica, which divide its share equally. */
  readonly workers: number;
  /** Values of MEMORY_MAX_BUCKETS and MEMORY_MAX_BYTES, which also limit the ledger of owed hits. */
  readonly maxBuckets: number;
  readonly maxBytes: number;
  /** The store that the local buckets replace, without a cache in front of it. */
  readonly store: BucketStore;
  /** Return whether the store decides for all partitions, and for at least one. */
  readonly up: () => boolean;
  readonly anyUp: () => boolean;
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

/** Counts of hits that were allowed without the store; read when metrics are scraped. */
export interface LocalChargeStats {
  /** Number of buckets that weir has not charged so far. */
  readonly waiting: number;
  /** Number of buckets charged since start. */
  readonly charged: number;
  /** Number of buckets whose hits had been refilled before they were charged. */
  readonly lapsed: number;
  /** Number of buckets that were not charged: because of the bounds, or because the process ended. */
  readonly forgotten: number;
}

/**
 * Buckets in memory that replace those in Redis (`on_store_failure: local`), each with this process's share of the
 * limit. Once Redis is available again, it is charged for the hits that they allowed. The next outage starts with full
 * buckets, but only if Redis was stable before. Otherwise, a flapping Redis would refill the local buckets again and
 * again.
 */
export class LocalBuckets implements LocalStore {
  memory: MemoryStore;
  readonly #options: LocalBucketsOptions;
  readonly #rates: DerivedRates;
  readonly #ledger: OwedLedger;
  readonly #repayment: Repayment;
  readonly #forgetTimer: NodeJS.Timeout;
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
    this.#forgetTimer = setInterval(() => {
      const isUnused = clock.monotonicMicros() - this.#usedAtMicros > FORGET_MICROS;
      const { memory } = this;
      // Holds end when they are settled or expire.
      if (!up() || !isUnused || memory.hasHolds()) return;
      this.#ledger.forgetPaid();
      if (memory.size > 0) this.memory = newStore();
    }, FORGET_MICROS / 1000).unref();
  }

  get stats(): LocalChargeStats {
    const { size, lapsed, forgotten } = this.#ledger;
    const { charged, unanswered } = this.#repayment;
    // No result will arrive for charges that were given up.
    const waiting = this.#closed ? 0 : size + unanswered;
    return { waiting, charged, lapsed, forgotten };
  }

  /** Called when the store, or a part of it, becomes available. */
  storeIsUp(): void {
    this.#repayment.begin();
  }

  /**
   * Takes from local buckets. The outcomes report the rule's whole limit, but only the hits that this process may still
   * allow.
   */
  take(items: readonly LocalTake[]): readonly TakeOutcome[] {
    this.#usedAtMicros = this.#options.clock.monotonicMicros();
    const parts = items.map((item) => this.#partOf(item));
    const counted = parts.map((part) => !this.#settlesEndedWindow(part));
    const outcomes = this.memory.take(parts);
    if (!deniesRequest(items, outcomes)) this.#note(items, parts, outcomes, counted);
    return outcomes.map((outcome, i) => {
      const missing = reported(items[i]) - reported(parts[i]);
      return missing === 0 ? outcome : { ...outcome, used: outcome.used + missing };
    });
  }

  /** Charges owed hits for at most 0.5 s. */
  async close(): Promise<void> {
    clearInterval(this.#forgetTimer);
    await this.#repayment.close();
    this.#closed = true;
    await this.memory.close();
  }

  #partOf({ onStoreFailure, ...item }: LocalTake): TakeItem {
    const { key, tagLength, rate, hits, refund, enforcement, holds, settles } = item;
    const local = this.#rates.local(rate, shareOf(onStoreFailure));
    return {
      ...{ key, tagLength, rate: local, hits, refund, enforcement },
      ...(holds !== undefined && { holds }),
      ...(settles !== undefined && { settles }),
    };
  }

  /** Returns whether an item settles a hold of a window that has ended. It then changes no window. */
  #settlesEndedWindow(item: TakeItem): boolean {
    const { rate, settles } = item;
    if (rate.kind !== 'window' || settles === undefined) return false;
    const takenMicros = this.memory.takenMicrosOf(item);
    return takenMicros >= 0 && rate.startOf(takenMicros) !== rate.startOf(this.#options.clock.wallMicros());
  }

  /** Notes what the store is owed. `counted`: whether an item changes what the current window allows. */
  #note(
    items: readonly LocalTake[],
    parts: readonly TakeItem[],
    outcomes: readonly TakeOutcome[],
    counted: readonly boolean[],
  ): void {
    for (let i = 0; i < items.length; i++) {
      const item = items[i] as LocalTake;
      const { limited, hold, heldHits } = outcomes[i] as TakeOutcome;
      // A limited item took nothing. Redis counts no request that was in flight without it.
      if (item.hits === 0 || limited || item.rate.kind === 'concurrency' || hold === 'unknown') continue;
      if (counted[i] === false || isSkipped(items, outcomes, i)) continue;
      const correction = heldHits === undefined ? undefined : correctionOf(item.hits, heldHits);
      this.#ledger.note({ ...item, ...correction }, (parts[i] as TakeItem).rate);
    }
    if (this.#ledger.size > 0) this.#repayment.expect();
  }
}

function reported(item: TakeItem | undefined): number {
  return item?.rate.reportedLimit ?? 0;
}
