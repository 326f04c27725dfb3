import { expectState } from '../../invariant.js';
import {
  StorageError,
  type TakeItem,
  type TakeOutcome,
  type TakeResult,
} from '../../limiter/bucket-store.js';
import { deniesRequest } from '../../limiter/decide.js';
import { placeableHold } from '../../limiter/holds/hold.js';
import { isCharge } from '../../limiter/rate.js';
import { outcomesBeforeTake } from './give-back.js';
import type { Partition, Shard, ShardMap, TakeOptions } from './shard.js';

/** Outcome of an undecided item in a request that is denied anyway. */
const UNDECIDED: TakeOutcome = {
  limited: false,
  remaining: 0,
  waitMicros: 0,
  used: 0,
  forgiven: 0,
  cached: false,
};

/** The same for an item that may have placed a hold. */
const UNANSWERED: TakeOutcome = { ...UNDECIDED, hold: 'abandoned' };

/** The part of a request that one partition decides. */
export class PartitionRequest {
  readonly items: TakeItem[] = [];
  /** Indexes of its items in the request. */
  readonly indexes: number[] = [];
  /** The outcomes of its items that are known so far. */
  outcomes: readonly TakeOutcome[] = [];
  /** The {@link Shard.connectionEpoch} at the time of the reply. */
  takenEpoch: unknown;
  readonly partition: Partition;
  readonly shard: Shard | undefined;
  /** The items that were sent to the shard, and their result. */
  #sentItems: readonly TakeItem[] = [];
  #result: TakeResult | undefined;
  #isGivenBack = false;

  constructor(map: ShardMap, partition: Partition) {
    const shard = map.shardOf(partition);
    this.partition = partition;
    this.shard = shard instanceof StorageError ? undefined : shard;
    if (shard instanceof StorageError) this.#result = shard;
  }

  /**
   * Sends its items to the server, unless the server is known to be unavailable. `asked` are the items in the form in
   * which they are sent. Records the result, at once or later.
   */
  send(callOptions: TakeOptions, asked: readonly TakeItem[]): Promise<void> | undefined {
    const { shard, partition } = this;
    if (shard === undefined || this.error !== undefined) return undefined;
    this.#sentItems = asked;
    const result = shard.takePartition({ partition, items: asked, ...callOptions });
    if (result instanceof Promise) return result.then((late) => this.#note(shard, late));
    this.#note(shard, result);
    return undefined;
  }

  /** Records that it cannot be sent because of `error`. */
  refuse(error: StorageError | undefined): void {
    this.#result ??= error;
  }

  /** Why it is undecided; undefined if it is decided or was not sent. */
  get error(): StorageError | undefined {
    return this.#result instanceof StorageError ? this.#result : undefined;
  }

  /**
   * Whether the shard has decided and an enforced item does not fit, which is enough to deny the request. Otherwise, a
   * caller could get around available limits by naming an unavailable bucket.
   */
  get denies(): boolean {
    if (this.error !== undefined) return false;
    return this.items.some(
      ({ enforcement }, i) => enforcement === 'enforce' && this.outcomes[i]?.limited === true,
    );
  }

  /** Whether it has a quota that is not used up. */
  get hasQuotaLeft(): boolean {
    return this.items.some(
      ({ enforcement }, i) => enforcement === 'quota' && this.outcomes[i]?.limited === false,
    );
  }

  get hasQuota(): boolean {
    return this.items.some(({ enforcement }) => enforcement === 'quota');
  }

  /** The items that were sent and taken, and their outcomes; undefined if none were taken. */
  get taken():
    | { readonly items: readonly TakeItem[]; readonly outcomes: readonly TakeOutcome[] }
    | undefined {
    const outcomes = this.#result;
    if (outcomes === undefined || outcomes instanceof StorageError) return undefined;
    const items = this.#sentItems;
    return deniesRequest(items, outcomes) ? undefined : { items, outcomes };
  }

  /** Returns {@link taken} once, so that it is given back only once. */
  takeBack(): PartitionRequest['taken'] {
    expectState(!this.#isGivenBack, 'the hits of a request are given back only once');
    this.#isGivenBack = true;
    return this.taken;
  }

  /** Returns the outcomes of its items in a denied request. */
  outcomesOfDenial(countDeniedHits: boolean): readonly TakeOutcome[] {
    const { taken, error } = this;
    if (error !== undefined) {
      return this.items.map((item) =>
        !error.unsent && placeableHold(item) !== undefined ? UNANSWERED : UNDECIDED,
      );
    }
    return taken === undefined
      ? this.outcomes
      : outcomesBeforeTake(taken.items, taken.outcomes, countDeniedHits);
  }

  /** Records the outcomes of its refunds. */
  noteRefunds(outcomes: readonly TakeOutcome[]): void {
    let at = 0;
    this.outcomes = this.items.map((item, i) => {
      const outcome = item.refund ? outcomes[at++] : this.outcomes[i];
      return outcome as TakeOutcome;
    });
  }

  #note(shard: Shard, result: TakeResult): void {
    this.#result = result;
    this.takenEpoch = shard.connectionEpoch;
    if (!(result instanceof StorageError)) this.outcomes = result;
  }
}

/**
 * Divides a request by partition, in the order of the first items. If a partition has no server, the error is the
 * result of its request.
 */
export function divide(
  items: readonly TakeItem[],
  mapOf: (item: TakeItem) => ShardMap,
): readonly PartitionRequest[] {
  const requests: PartitionRequest[] = [];
  const known = new Map<ShardMap, Map<Partition, PartitionRequest>>();
  for (let i = 0; i < items.length; i++) {
    const item = items[i] as TakeItem;
    const map = mapOf(item);
    const name = map.partitionOf(item);
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
    request.items.push(item);
    request.indexes.push(i);
  }
  return requests;
}

/** Returns the outcomes of all partitions, in the order of the request. */
export function join(
  items: readonly TakeItem[],
  requests: readonly PartitionRequest[],
  outcomesOf: (request: PartitionRequest) => readonly TakeOutcome[],
): readonly TakeOutcome[] {
  const outcomes = new Array<TakeOutcome>(items.length);
  for (const request of requests) {
    const found = outcomesOf(request);
    request.indexes.forEach((index, i) => {
      outcomes[index] = found[i] as TakeOutcome;
    });
  }
  return outcomes;
}

export function canDeny({ rate, hits, refund, enforcement }: TakeItem): boolean {
  return (enforcement === 'enforce' || enforcement === 'quota') && !refund && !isCharge(rate, hits, refund);
}
