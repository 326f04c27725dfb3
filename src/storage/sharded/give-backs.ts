import type { TakeItem } from '../../limiter/bucket-store.js';
import { refundsOf } from './give-back.js';
import type { PartitionRequest } from './partition-requests.js';
import type { GiveBackResult } from './shard.js';

/** Number of give-backs since the start of the process, by result. */
export interface GiveBackStats {
  /** All hits were given back. */
  readonly made: number;
  /** Some refunds were refused, or were not answered, so that they may have been applied. */
  readonly failed: number;
  /** Some refunds were not sent, because the connection on which the hits were taken was lost. */
  readonly skipped: number;
}

/** Settings of {@link GiveBacks}. */
export interface GiveBackOptions {
  /** Maximum time for a request to several partitions, and for giving back, in microseconds. */
  readonly timeoutMicros: number;
  /** Whether windows count the hits of denied requests. The servers must have the same setting. */
  readonly countDeniedHits: boolean;
  /** Returns the time, in microseconds, of the clock that deadlines refer to. */
  readonly monotonicMicros: () => number;
  /** Receives the refunds of a partition when they are sent, and again when their result is known. */
  readonly onGiveBack?: ((refunds: readonly TakeItem[]) => void) | undefined;
}

/** Results from worst to best. The result of a request is the worst result of its partitions. */
const WORST_FIRST: readonly GiveBackResult[] = ['failed', 'skipped', 'made'];

/**
 * Gives back the hits that denied requests have taken from other partitions, except holds. Answers do not wait for
 * this. Each refund is sent only once, because repeating it might give back too much. No refund is sent after the
 * connection on which the hits were taken has been lost. Windows that have begun since then do not change, and tokens
 * that would have overflowed since then are not given back ({@link refundsOf}).
 */
export class GiveBacks {
  readonly #options: GiveBackOptions;
  readonly #counts = { made: 0, failed: 0, skipped: 0 };
  readonly #underWay = new Set<Promise<void>>();

  constructor(options: GiveBackOptions) {
    this.#options = options;
  }

  get stats(): GiveBackStats {
    return this.#counts;
  }

  /**
   * Starts giving back the hits that were taken from those partitions among `requests` that have allowed the request.
   */
  begin(requests: readonly PartitionRequest[]): void {
    const sent = this.#send(requests).then((result) => {
      if (result !== undefined) this.#counts[result]++;
      this.#underWay.delete(sent);
    });
    this.#underWay.add(sent);
  }

  /** Resolves when all give-backs that have begun before the call have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  /** Returns the worst result, or undefined if no hits had to be given back. */
  async #send(requests: readonly PartitionRequest[]): Promise<GiveBackResult | undefined> {
    const { timeoutMicros, countDeniedHits, monotonicMicros, onGiveBack } = this.#options;
    // Giving back has its own timeout, because the timeout of the request may have expired.
    const deadlineMicros = monotonicMicros() + timeoutMicros;
    const results: Promise<GiveBackResult>[] = [];
    for (const request of requests) {
      const { partition, shard, takenEpoch } = request;
      const taken = request.takeBack();
      if (shard === undefined || taken === undefined) continue;
      const items = refundsOf(taken.items, taken.outcomes, countDeniedHits);
      if (items.length === 0) continue;
      onGiveBack?.(items);
      const take = { partition, items, deadlineMicros, mayWait: true };
      results.push(
        shard.giveBackPartition(take, takenEpoch).then((result) => {
          onGiveBack?.(items);
          return result;
        }),
      );
    }
    return results.length === 0 ? undefined : worstOf(await Promise.all(results));
  }
}

function worstOf(results: readonly GiveBackResult[]): GiveBackResult {
  return WORST_FIRST.find((result) => results.includes(result)) ?? 'made';
}
