import { BrokenInvariant } from '../../invariant.js';
import {
  type BucketStore,
  StorageError,
  type TakeItem,
  type TakeOutcome,
} from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import type { Rate } from '../../limiter/rate.js';
import { turn } from '../../runtime/turns.js';
import type { PlannedTake } from '../../service/plan.js';

/** Buckets that the store is asked about at the same time. */
const MAX_CONCURRENT_CALLS = 20;

/** What a question asks of one bucket. */
export interface BucketCall {
  readonly take: PlannedTake;
  /** Hits to give back; 0: only a look. */
  readonly hits: number;
  /** Whether they may go past full. */
  readonly over: boolean;
}

/** What was there before, and afterwards; the same of a mere look. */
export interface BucketFound {
  readonly before: TakeOutcome;
  readonly after: TakeOutcome;
}

/**
 * Looks at buckets, and gives back to them, through the store that decides: each bucket in one atomic step, some at the
 * same time, with a turn of the event loop in between.
 */
export class BucketCalls {
  readonly #store: BucketStore;
  readonly #timeoutMicros: number;
  readonly #clock: Clock;

  constructor(store: BucketStore, timeoutMicros: number, clock: Clock) {
    this.#store = store;
    this.#timeoutMicros = timeoutMicros;
    this.#clock = clock;
  }

  /** One answer for each call, in their order. */
  async ask(calls: readonly BucketCall[]): Promise<readonly (BucketFound | StorageError)[]> {
    const found: (BucketFound | StorageError)[] = [];
    for (let at = 0; at < calls.length; at += MAX_CONCURRENT_CALLS) {
      found.push(
        ...(await Promise.all(calls.slice(at, at + MAX_CONCURRENT_CALLS).map((call) => this.#ask(call)))),
      );
      await turn();
    }
    return found;
  }

  async #ask({ take, hits, over }: BucketCall): Promise<BucketFound | StorageError> {
    const { key, tagLength, rate } = take;
    // A refund of nothing is a look that no cache answers; none is ever limited, so nothing can be denied.
    const look: TakeItem = { key, tagLength, rate, hits: 0, refund: true, enforcement: 'observe' };
    if (hits === 0) return this.#take([look]);
    let denied = 0;
    if (countsPastLimit(rate) && hits < Number.MAX_SAFE_INTEGER) {
      const found = await this.#take([look]);
      if (found instanceof StorageError) return found;
      denied = Math.max(0, found.before.used - rate.reportedLimit);
    }
    // What is counted meanwhile is not known here, and may use up a part of it.
    const back = Math.min(hits + denied, Number.MAX_SAFE_INTEGER);
    return this.#take([
      look,
      { key, tagLength, rate, hits: back, refund: true, enforcement: 'observe', allowSurplus: over },
    ]);
  }

  async #take(items: readonly TakeItem[]): Promise<BucketFound | StorageError> {
    const deadlineMicros = this.#clock.monotonicMicros() + this.#timeoutMicros;
    try {
      const result = await this.#store.take(items, deadlineMicros, this);
      if (result instanceof StorageError) return result;
      return { before: result[0] as TakeOutcome, after: result.at(-1) as TakeOutcome };
    } catch (error) {
      if (error instanceof BrokenInvariant) return new StorageError('broken', error.message);
      throw error;
    }
  }
}

/** Whether it is a window that may have counted hits that it denied: a grant is not to pay for those. */
function countsPastLimit({ kind, maxDebt }: Rate): boolean {
  return kind === 'window' && maxDebt === 0;
}
