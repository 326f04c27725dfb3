import { expectState } from '../../invariant.js';
import {
  StorageError,
  type TakeItem,
  type TakeOutcome,
  type TakeResult,
} from '../../limiter/bucket-store.js';
import { deniesRequest } from '../../limiter/decide.js';
import { placeableHold } from '../../limiter/holds/hold.js';
import { rateWithoutCharges } from '../../limiter/local-rate.js';
import { isBeyondLimit, isCharge } from '../../limiter/rate.js';
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

/** Options of one step of a request. */
export interface Step {
  /** Refunds are only peeked at. They follow once the request is known to be allowed. */
  readonly defersRefunds: boolean;
  /** Quotas are only observed, because no partition knows whether all quotas of the request are used up. */
  readonly observesQuotas: boolean;
  /** Each partition must deny its items, so that nothing has to be given back. */
  readonly isDenied: boolean;
}

/** The part of a request that one partition decides. */
export class PartitionRequest {
  readonly items: TakeItem[] = [];
  /** Indexes of its items in the request. */
  readonly indexes: number[] = [];
  /** The outcomes of its items that are known so far. */
  outcomes: readonly TakeOutcome[] = [];
  /** Whether its refunds are sent in a separate step. */
  defersRefunds = false;
  /** The {@link Shard.connectionEpoch} at the time of the reply. */
  takenEpoch: unknown;
  readonly partition: Partition;
  readonly map: ShardMap;
  readonly shard: Shard | undefined;
  /** The items that were last sent to the shard, possibly with an additional item at the end, and their result. */
  #sentItems: readonly TakeItem[] = [];
  #result: TakeResult | undefined;
  #isGivenBack = false;

  constructor(map: ShardMap, partition: Partition) {
    const shard = map.shardOf(partition);
    this.partition = partition;
    this.map = map;
    this.shard = shard instanceof StorageError ? undefined : shard;
    if (shard instanceof StorageError) this.#result = shard;
  }

  /** Sends items to the server, unless it is known to be unavailable. Records the result, at once or later. */
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
    const asked = this.#sentItems;
    return deniesRequest(asked, outcomes) ? undefined : { items: asked, outcomes };
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
      // An item that certainly denies the others places no holds.
      const mayHold = !error.unsent && this.#sentItems.length === this.items.length;
      return this.items.map((item) =>
        mayHold && placeableHold(item) !== undefined ? UNANSWERED : UNDECIDED,
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
      const outcome = isRefund(item) ? outcomes[at++] : this.outcomes[i];
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

/** Returns the items of one partition that a step sends. */
export function itemsOfStep(
  items: readonly TakeItem[],
  { defersRefunds, observesQuotas, isDenied }: Step,
  countDeniedHits: boolean,
): readonly TakeItem[] {
  const denial = isDenied ? certainDenial(items, countDeniedHits) : [];
  const peeksAtRefunds = defersRefunds || (isDenied && denial.length === 0);
  const asked = items.map((item) => {
    if (isRefund(item)) return peeksAtRefunds ? { ...item, hits: 0 } : item;
    return observesQuotas && item.enforcement === 'quota'
      ? { ...item, enforcement: 'observe' as const }
      : item;
  });
  return [...asked, ...denial];
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

/**
 * Returns whether an item can deny its request, and whether an item certainly denies it because its hits exceed its
 * limit.
 */
export function possibleDenial(items: readonly TakeItem[]): {
  readonly canBeDenied: boolean;
  readonly isCertainlyDenied: boolean;
} {
  let canBeDenied = false;
  for (const [i, item] of items.entries()) {
    if (!canDeny(item)) continue;
    canBeDenied = true;
    const { rate, hits, refund, enforcement } = item;
    // An earlier item of the chain may have enough.
    const isLastOfChain = items[i - 1]?.enforcement === 'spill';
    if (enforcement === 'enforce' && hits > 0 && !isLastOfChain && isBeyondLimit(rate, hits, refund)) {
      return { canBeDenied, isCertainlyDenied: true };
    }
  }
  return { canBeDenied, isCertainlyDenied: false };
}

/** Returns whether an item can deny its request. */
export function canDeny({ rate, hits, refund, enforcement }: TakeItem): boolean {
  return (enforcement === 'enforce' || enforcement === 'quota') && !refund && !isCharge(rate, hits, refund);
}

/** Returns whether an item gives hits back only if the request is allowed, and therefore in a later step. */
export function isRefund({ refund }: TakeItem): boolean {
  return refund;
}

/**
 * Returns an additional item that makes one partition deny its items. It has more hits than one of their buckets can
 * contain, so it takes none. It uses one of their keys, because another key might be on another server. Empty if no
 * take has to be prevented: windows that count denied hits need no such item, and would count its hits.
 */
function certainDenial(items: readonly TakeItem[], countDeniedHits: boolean): TakeItem[] {
  const protectedItem = items.find(({ rate }) => !rate.countsDenied(countDeniedHits));
  if (protectedItem === undefined) return [];
  const { key, tagLength, rate } = protectedItem;
  const hits = rate.reportedLimit + 1;
  return [{ key, tagLength, rate: rateWithoutCharges(rate), hits, refund: false, enforcement: 'enforce' }];
}
