import { StorageError, type Take, type TakeOutcome, type TakeResult } from '../../limiter/bucket-store.js';
import { deniesRequest } from '../../limiter/decide.js';
import { placeableHold } from '../../limiter/holds/hold.js';
import { isCharge } from '../../limiter/rate.js';
import { checkInvariant } from '../../runtime/invariant.js';
import { outcomesBeforeTake } from './give-back.js';
import type { Partition, Shard, ShardMap, TakeOptions } from './shard.js';

/** Outcome of an undecided item in a request that is denied anyway. */
const UNDECIDED: TakeOutcome = {
  overLimit: false,
  remaining: 0,
  waitMicros: 0,
  used: 0,
  uncollectedHits: 0,
  cached: false,
};

/** Outcome of such an item if it may have placed a hold. */
const UNANSWERED: TakeOutcome = { ...UNDECIDED, hold: 'abandoned' };

/** The part of a request that one partition decides. */
export class PartitionRequest {
  readonly items: Take[] = [];
  /** Index of each item in the request. */
  readonly indexes: number[] = [];
  /** The outcomes of the items, as far as they are known. */
  outcomes: readonly TakeOutcome[] = [];
  /** The {@link Shard.connectionId} at the time of the reply. */
  takenOn: unknown;
  readonly partition: Partition;
  readonly shard: Shard | undefined;
  /** The items that were sent to the shard. `#result` is their result. */
  #sentItems: readonly Take[] = [];
  #result: TakeResult | undefined;
  #isGivenBack = false;

  constructor(map: ShardMap, partition: Partition) {
    const shard = map.shardOf(partition);
    this.partition = partition;
    this.shard = shard instanceof StorageError ? undefined : shard;
    if (shard instanceof StorageError) this.#result = shard;
  }

  /**
   * Sends the items to the server, unless the server is known to be unavailable, and records the result. `asked` are
   * the items in the form in which they are sent. Returns a promise if the server does not answer synchronously.
   */
  send(callOptions: TakeOptions, asked: readonly Take[]): Promise<void> | undefined {
    const { shard, partition } = this;
    if (shard === undefined || this.error !== undefined) return undefined;
    this.#sentItems = asked;
    const result = shard.takePartition({ partition, items: asked, ...callOptions });
    if (result instanceof Promise) return result.then((late) => this.#note(shard, late));
    this.#note(shard, result);
    return undefined;
  }

  /** Records that the items cannot be sent because of `error`. */
  refuse(error: StorageError | undefined): void {
    this.#result ??= error;
  }

  /** The reason why the partition has not decided; undefined if it has decided, or if nothing was sent to it. */
  get error(): StorageError | undefined {
    return this.#result instanceof StorageError ? this.#result : undefined;
  }

  /**
   * Whether the shard has decided that the request exceeds an enforced limit. This is enough to deny the request, even
   * if other shards are unavailable. Otherwise, callers could bypass a limit by adding a bucket that is unavailable.
   */
  get denies(): boolean {
    if (this.error !== undefined) return false;
    return this.items.some(
      ({ enforcement }, i) => enforcement === 'enforce' && this.outcomes[i]?.overLimit === true,
    );
  }

  /** Whether a quota of this partition is not used up. */
  get hasQuotaLeft(): boolean {
    return this.items.some(
      ({ enforcement }, i) => enforcement === 'quota' && this.outcomes[i]?.overLimit === false,
    );
  }

  get hasQuota(): boolean {
    return this.items.some(({ enforcement }) => enforcement === 'quota');
  }

  /** The items that were sent, with their outcomes, if the partition has allowed them; otherwise undefined. */
  get taken(): { readonly items: readonly Take[]; readonly outcomes: readonly TakeOutcome[] } | undefined {
    const outcomes = this.#result;
    if (outcomes === undefined || outcomes instanceof StorageError) return undefined;
    const takes = this.#sentItems;
    return deniesRequest(takes, outcomes) ? undefined : { items: takes, outcomes };
  }

  /** Returns {@link taken}. May be called only once, so that the hits are given back only once. */
  takeBack(): PartitionRequest['taken'] {
    checkInvariant(!this.#isGivenBack, 'the hits of a request are given back only once');
    this.#isGivenBack = true;
    return this.taken;
  }

  /** Returns the outcomes that the items have in a denied request. */
  outcomesOfDenial(countDeniedHits: boolean): readonly TakeOutcome[] {
    const { taken, error } = this;
    if (error !== undefined) {
      return this.items.map((take) =>
        !error.unsent && placeableHold(take) !== undefined ? UNANSWERED : UNDECIDED,
      );
    }
    return taken === undefined
      ? this.outcomes
      : outcomesBeforeTake(taken.items, taken.outcomes, countDeniedHits);
  }

  /** Records the outcomes of the refunds. */
  noteRefunds(outcomes: readonly TakeOutcome[]): void {
    let at = 0;
    this.outcomes = this.items.map((take, i) => {
      const outcome = take.refund ? outcomes[at++] : this.outcomes[i];
      return outcome as TakeOutcome;
    });
  }

  #note(shard: Shard, result: TakeResult): void {
    this.#result = result;
    this.takenOn = shard.connectionId;
    if (!(result instanceof StorageError)) this.outcomes = result;
  }
}

/**
 * Divides a request into one request for each partition, in the order of their first items. If a partition has no
 * server, its request has the error as its result.
 */
export function divide(takes: readonly Take[], mapOf: (take: Take) => ShardMap): readonly PartitionRequest[] {
  const requests: PartitionRequest[] = [];
  const known = new Map<ShardMap, Map<Partition, PartitionRequest>>();
  for (let i = 0; i < takes.length; i++) {
    const take = takes[i] as Take;
    const map = mapOf(take);
    const name = map.partitionOf(take);
    let ofMap = known.get(map);
    if (ofMap === undefined) {
      ofMap = new Map();
      known.set(map, ofMap);
    }
    let request = ofMap.get(name);
    if (request === undefined) {
      request = new PartitionRequest(map, name);
      ofMap.set(name, request);
      requests.push(request);
    }
    request.items.push(take);
    request.indexes.push(i);
  }
  return requests;
}

/** The outcomes of all partitions, in the order of the request. */
export function join(
  takes: readonly Take[],
  requests: readonly PartitionRequest[],
  outcomesOf: (request: PartitionRequest) => readonly TakeOutcome[],
): readonly TakeOutcome[] {
  const outcomes = new Array<TakeOutcome>(takes.length);
  for (const request of requests) {
    const found = outcomesOf(request);
    request.indexes.forEach((index, i) => {
      outcomes[index] = found[i] as TakeOutcome;
    });
  }
  return outcomes;
}

export function canDeny({ rate, hits, refund, enforcement }: Take): boolean {
  return (enforcement === 'enforce' || enforcement === 'quota') && !refund && !isCharge(rate, hits, refund);
}
