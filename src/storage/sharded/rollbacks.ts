import type { Take } from '../../limiter/bucket-store.js';
import { refundsOf } from './give-back.js';
import type { PartitionRequest } from './partition-requests.js';
import type { RollbackResult } from './shard.js';

/** Number of give-backs since the start of the process, by result. */
export interface RollbackStats {
  /** All hits were given back. */
  readonly made: number;
  /** Some refunds were refused, or were not answered, so that they may have been applied. */
  readonly failed: number;
  /** Some refunds were not sent, because the connection on which the hits were taken was lost. */
  readonly skipped: number;
}

/** Settings of {@link Rollbacks}. */
export interface RollbackOptions {
  /** Maximum time for a request to several partitions, and for giving back, in microseconds. */
  readonly timeoutMicros: number;
  /** Whether windows count the hits of denied requests. The servers must have the same setting. */
  readonly countDeniedHits: boolean;
  /** The clock that deadlines refer to, in microseconds. */
  readonly monotonicMicros: () => number;
  /** Receives the refunds of a partition when they are sent, and again when their result is known. */
  readonly onRollback?: ((refunds: readonly Take[]) => void) | undefined;
}

/** Results from worst to best. The result of a request is the worst result of its partitions. */
const WORST_FIRST: readonly RollbackResult[] = ['failed', 'skipped', 'made'];

/**
 * Gives back the hits that denied requests have taken from other partitions, except holds. Answers do not wait for
 * this. Each refund is sent only once, because repeating it might give back too much. No refund is sent after the
 * connection on which the hits were taken has been lost. Windows that have begun since then do not change, and tokens
 * that would have overflowed since then are not given back ({@link refundsOf}).
 */
export class Rollbacks {
  readonly #options: RollbackOptions;
  readonly #counts = { made: 0, failed: 0, skipped: 0 };
  readonly #underWay = new Set<Promise<void>>();

  constructor(options: RollbackOptions) {
    this.#options = options;
  }

  get stats(): RollbackStats {
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

  /** The worst result; undefined if no hits had to be given back. */
  async #send(requests: readonly PartitionRequest[]): Promise<RollbackResult | undefined> {
    const { timeoutMicros, countDeniedHits, monotonicMicros, onRollback } = this.#options;
    // Giving back has its own timeout, because the timeout of the request may have expired.
    const deadlineMicros = monotonicMicros() + timeoutMicros;
    const results: Promise<RollbackResult>[] = [];
    for (const request of requests) {
      const { partition, shard, takenOn } = request;
      const taken = request.takeBack();
      if (shard === undefined || taken === undefined) continue;
      const takes = refundsOf(taken.items, taken.outcomes, countDeniedHits);
      if (takes.length === 0) continue;
      onRollback?.(takes);
      const take = { partition, items: takes, deadlineMicros, mayWait: true };
      results.push(
        shard.rollBackPartition(take, takenOn).then((result) => {
          onRollback?.(takes);
          return result;
        }),
      );
    }
    return results.length === 0 ? undefined : worstOf(await Promise.all(results));
  }
}

function worstOf(results: readonly RollbackResult[]): RollbackResult {
  return WORST_FIRST.find((result) => results.includes(result)) ?? 'made';
}
