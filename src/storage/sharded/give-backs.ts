import type { TakeItem } from '../../limiter/bucket-store.js';
import { runInTurns } from '../../runtime/turns.js';
import { refundsOf } from './give-back.js';
import { inSlices, type PartitionRequest } from './partition-requests.js';
import type { GiveBackResult } from './shard.js';

/** Requests that were given back what one store, or part of a store, had taken for them, since start. */
export interface GiveBackStats {
  /** All of it is back. */
  readonly made: number;
  /** Some of it was refused, or not answered: it may be back. */
  readonly failed: number;
  /** Some of it was not sent, because the connection was lost on which it was taken. */
  readonly skipped: number;
}

/** Settings of {@link GiveBacks}. */
export interface GiveBackOptions {
  /** Longest that a request to several parts, and giving back, may take, microseconds. */
  readonly timeoutMicros: number;
  /** As the servers do. */
  readonly countDeniedHits: boolean;
  /** Clock of deadlines, microseconds. */
  readonly monotonicMicros: () => number;
  /** Told what is given back to a part, as refunds, when that is sent and when it is known what came of it. */
  readonly onGiveBack?: ((refunds: readonly TakeItem[]) => void) | undefined;
}

/** The others may have been made. */
const WORST_FIRST: readonly GiveBackResult[] = ['failed', 'skipped', 'made'];

/**
 * Gives back what requests took that were denied elsewhere. No answer waits for it, and it is tried once: a second time
 * might give back more than was taken. Nor is it tried once the connection was lost on which it was taken. It leaves
 * alone windows that began later, and what a bucket would have spilled by then ({@link refundsOf}).
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

  /** Begins to give back what those of `parts` took that let the request pass. */
  begin(requests: readonly PartitionRequest[], connection: unknown, isLarge: boolean): void {
    const sent = this.#send(requests, connection, isLarge).then((result) => {
      if (result !== undefined) this.#counts[result]++;
      this.#underWay.delete(sent);
    });
    this.#underWay.add(sent);
  }

  /** Resolves once all is over that was begun before. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  /** The worst of what became of it; undefined where nothing was to be given back. */
  async #send(
    requests: readonly PartitionRequest[],
    connection: unknown,
    isLarge: boolean,
  ): Promise<GiveBackResult | undefined> {
    const { timeoutMicros, countDeniedHits, monotonicMicros, onGiveBack } = this.#options;
    // The time of the request may be over: giving back has its own.
    const deadlineMicros = monotonicMicros() + timeoutMicros;
    const results: Promise<GiveBackResult>[] = [];
    await runInTurns(
      inSlices(requests, (request) => {
        const { partition, shard, takenEpoch } = request;
        const taken = request.takeBack();
        if (shard === undefined || taken === undefined) return;
        const items = refundsOf(taken.asked, taken.outcomes, countDeniedHits);
        if (items.length === 0) return;
        onGiveBack?.(items);
        const take = { partition, items, deadlineMicros, connection, mayWait: true, isLarge };
        results.push(
          shard.giveBackPartition(take, takenEpoch).then((result) => {
            onGiveBack?.(items);
            return result;
          }),
        );
      }),
    );
    const found = new Set(await Promise.all(results));
    return WORST_FIRST.find((result) => found.has(result));
  }
}
