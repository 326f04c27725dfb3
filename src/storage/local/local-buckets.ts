import type { LocalStore, LocalTake, Take, TakeOutcome } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import { shareOf } from '../../limiter/failure-policy.js';
import { LocalRates } from '../../limiter/local-rate.js';
import type { MemoryStore } from '../memory/memory-store.js';

/** Time without use after which local buckets are deleted, if Redis is available. */
const FORGET_MICROS = 5_000_000;

/** Settings of {@link LocalBuckets}. */
export interface LocalBucketsOptions {
  readonly newStore: () => MemoryStore;
  readonly clock: Clock;
  /** Number of processes of this replica, which divide its share equally. */
  readonly workers: number;
  /** Returns whether Redis decides for all partitions. */
  readonly up: () => boolean;
}

/**
 * Buckets in memory that replace those in Redis (`on_store_failure: local`), each with this process's share of the
 * limit. They are forgotten when Redis is available again. The next outage starts with full buckets, but only if Redis
 * was stable before. Otherwise, a flapping Redis would refill the local buckets again and again.
 */
export class LocalBuckets implements LocalStore {
  memory: MemoryStore;
  readonly #clock: Clock;
  readonly #rates: LocalRates;
  readonly #forgetTimer: NodeJS.Timeout;
  #usedAtMicros = Number.NEGATIVE_INFINITY;

  constructor({ newStore, clock, workers, up }: LocalBucketsOptions) {
    this.#clock = clock;
    this.memory = newStore();
    this.#rates = new LocalRates(workers);
    this.#forgetTimer = setInterval(() => {
      const isUnused = clock.monotonicMicros() - this.#usedAtMicros > FORGET_MICROS;
      const { memory } = this;
      // Holds end when they are settled or expire.
      if (up() && isUnused && memory.size > 0 && !memory.hasHolds()) this.memory = newStore();
    }, FORGET_MICROS / 1000).unref();
  }

  /**
   * Takes from local buckets. The outcomes report the rule's whole limit, but only the hits that this process may still
   * allow.
   */
  take(items: readonly LocalTake[]): readonly TakeOutcome[] {
    this.#usedAtMicros = this.#clock.monotonicMicros();
    const parts = items.map((item) => this.#partOf(item));
    return this.memory.take(parts).map((outcome, i) => {
      const missing = reported(items[i]) - reported(parts[i]);
      return missing === 0 ? outcome : { ...outcome, used: outcome.used + missing };
    });
  }

  async close(): Promise<void> {
    clearInterval(this.#forgetTimer);
    await this.memory.close();
  }

  #partOf({ onStoreFailure, ...item }: LocalTake): Take {
    const { key, hashTagLength, rate, hits, refund, enforcement, holds, settles } = item;
    const local = this.#rates.of(rate, shareOf(onStoreFailure));
    return {
      ...{ key, hashTagLength, rate: local, hits, refund, enforcement },
      ...(holds !== undefined && { holds }),
      ...(settles !== undefined && { settles }),
    };
  }
}

function reported(item: Take | undefined): number {
  return item?.rate.reportedLimit ?? 0;
}
