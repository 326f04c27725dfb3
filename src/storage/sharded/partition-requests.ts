import { expectState } from '../../invariant.js';
import {
  StorageError,
  type TakeItem,
  type TakeOutcome,
  type TakeResult,
} from '../../limiter/bucket-store.js';
import { deniesRequest } from '../../limiter/decide.js';
import { rateWithoutCharges } from '../../limiter/local-rate.js';
import { isBeyondLimit, isCharge } from '../../limiter/rate.js';
import { outcomesBeforeTake } from './give-back.js';
import type { Partition, Shard, ShardMap, TakeOptions } from './shard.js';

/** Items, or parts, that are looked at in one stretch: well below a millisecond. */
export const ITEMS_PER_SLICE = 256;

/** What is told of an item that could not be decided, in a request that is denied anyway. */
const UNDECIDED: TakeOutcome = {
  limited: false,
  remaining: 0,
  waitMicros: 0,
  used: 0,
  forgiven: 0,
  cached: false,
};

/** How the items of a request are asked for in one of its steps. */
export interface Step {
  /** Refunds are only looked at: they follow once it is known that the request passes. */
  readonly defersRefunds: boolean;
  /** Quotas are only watched: none of these parts knows whether all quotas of the request are used up. */
  readonly watchesQuotas: boolean;
  /** Nothing is to be taken that might have to be given back: each part denies what it is asked. */
  readonly isDenied: boolean;
  /** The items that are asked for; all unless told. */
  readonly selects?: (item: TakeItem) => boolean;
}

/** What a request asks of one part. */
export class PartitionRequest {
  readonly items: TakeItem[] = [];
  /** Where they stand in the request. */
  readonly indexes: number[] = [];
  /** What is known of the items. */
  outcomes: readonly TakeOutcome[] = [];
  /** Whether its refunds wait for a step of their own. */
  defersRefunds = false;
  /** {@link Shard.connectionEpoch}, when it answered. */
  takenEpoch: unknown;
  readonly partition: Partition;
  readonly map: ShardMap;
  readonly shard: Shard | undefined;
  /** What the shard was asked for last, which may have one item more at its end, and what it answered. */
  #sentItems: readonly TakeItem[] = [];
  #result: TakeResult | undefined;
  #selects: Step['selects'];
  #isGivenBack = false;

  constructor(map: ShardMap, partition: Partition) {
    const shard = map.shardOf(partition);
    this.partition = partition;
    this.map = map;
    this.shard = shard instanceof StorageError ? undefined : shard;
    if (shard instanceof StorageError) this.#result = shard;
  }

  /** Asks the server, unless it is known that it cannot be asked, and notes what it answers: at once, or later. */
  send(
    callOptions: TakeOptions,
    asked: readonly TakeItem[],
    which?: Step['selects'],
  ): Promise<void> | undefined {
    const { shard, partition } = this;
    if (shard === undefined || this.error !== undefined) return undefined;
    this.#sentItems = asked;
    this.#selects = which;
    const result = shard.takePartition({ partition, items: asked, ...callOptions });
    if (result instanceof Promise) return result.then((late) => this.#note(shard, late));
    this.#note(shard, result);
    return undefined;
  }

  /** It is not asked, because of `error`. */
  refuse(error: StorageError | undefined): void {
    this.#result ??= error;
  }

  /** Why it was not decided; undefined where it was, or was not asked yet. */
  get error(): StorageError | undefined {
    return this.#result instanceof StorageError ? this.#result : undefined;
  }

  /** The answer to what was asked last. */
  get result(): TakeResult {
    return this.#result as TakeResult;
  }

  /**
   * Whether the shard decided, and its word is enough to deny the request: an enforced item does not fit. Otherwise a
   * caller who names a bucket that cannot be asked would get round the limits that can.
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

  /** What it took, as it was asked, and what came of that; undefined where it took nothing. */
  get taken():
    | { readonly asked: readonly TakeItem[]; readonly outcomes: readonly TakeOutcome[] }
    | undefined {
    const outcomes = this.#result;
    if (outcomes === undefined || outcomes instanceof StorageError) return undefined;
    const asked = this.#sentItems;
    return deniesRequest(asked, outcomes) ? undefined : { asked, outcomes };
  }

  /** {@link taken}, for who gives it back. */
  takeBack(): PartitionRequest['taken'] {
    expectState(!this.#isGivenBack, 'what a request took is given back once');
    this.#isGivenBack = true;
    return this.taken;
  }

  /** What it tells of a request that is denied. */
  outcomesOfDenial(countDeniedHits: boolean): readonly TakeOutcome[] {
    if (this.error !== undefined) return this.items.map(() => UNDECIDED);
    const { taken } = this;
    if (taken === undefined) return this.outcomes;
    return this.#merge(outcomesBeforeTake(taken.asked, taken.outcomes, countDeniedHits), this.#selects);
  }

  /** Its refunds were made. */
  noteRefunds(outcomes: readonly TakeOutcome[]): void {
    this.outcomes = this.#merge(outcomes, isRefund);
  }

  #note(shard: Shard, result: TakeResult): void {
    this.#result = result;
    this.takenEpoch = shard.connectionEpoch;
    if (!(result instanceof StorageError)) this.outcomes = this.#merge(result, this.#selects);
  }

  /** What is known, with what a later step has found for the items that it asked for. */
  #merge(later: readonly TakeOutcome[], which: Step['selects']): readonly TakeOutcome[] {
    if (which === undefined) return later;
    let at = 0;
    return this.items.map((item, i) => (which(item) ? later[at++] : this.outcomes[i]) as TakeOutcome);
  }
}

/**
 * Divides a request by where its buckets lie: parts in the order in which they are named. The result of one without a
 * server says why.
 */
export function* divide(
  items: readonly TakeItem[],
  mapOf: (item: TakeItem) => ShardMap,
): Generator<void, readonly PartitionRequest[]> {
  const requests: PartitionRequest[] = [];
  const known = new Map<ShardMap, Map<Partition, PartitionRequest>>();
  for (let i = 0; i < items.length; i++) {
    if (i > 0 && i % ITEMS_PER_SLICE === 0) yield;
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

/** What a step asks for of the items of one part. */
export function itemsOfStep(
  items: readonly TakeItem[],
  { defersRefunds, watchesQuotas, isDenied, selects: which = () => true }: Step,
  countDeniedHits: boolean,
): readonly TakeItem[] {
  const denial = isDenied ? certainDenial(items, countDeniedHits) : [];
  const looksAtRefunds = defersRefunds || (isDenied && denial.length === 0);
  const asked = items.filter(which).map((item) => {
    if (isRefund(item)) return looksAtRefunds ? { ...item, hits: 0 } : item;
    return watchesQuotas && item.enforcement === 'quota'
      ? { ...item, enforcement: 'observe' as const }
      : item;
  });
  return [...asked, ...denial];
}

/** What the parts found, in the order of the request. */
export function* join(
  items: readonly TakeItem[],
  requests: readonly PartitionRequest[],
  outcomesOf: (request: PartitionRequest) => readonly TakeOutcome[],
): Generator<void, readonly TakeOutcome[]> {
  const outcomes = new Array<TakeOutcome>(items.length);
  yield* inSlices(requests, (request) => {
    const found = outcomesOf(request);
    request.indexes.forEach((index, i) => {
      outcomes[index] = found[i] as TakeOutcome;
    });
  });
  return outcomes;
}

/** Does `work` with each, and yields now and then. */
export function* inSlices<T>(each: readonly T[], work: (one: T) => void): Generator<void, void> {
  for (let i = 0; i < each.length; i++) {
    if (i > 0 && i % ITEMS_PER_SLICE === 0) yield;
    work(each[i] as T);
  }
}

/** Whether any item can deny its request, and whether one does for certain: it asks for more than its limit. */
export function possibleDenial(items: readonly TakeItem[]): {
  readonly canBeDenied: boolean;
  readonly isCertainlyDenied: boolean;
} {
  let canBeDenied = false;
  for (const item of items) {
    if (!canDeny(item)) continue;
    canBeDenied = true;
    const { rate, hits, refund, enforcement } = item;
    if (enforcement === 'enforce' && hits > 0 && isBeyondLimit(rate, hits, refund)) {
      return { canBeDenied, isCertainlyDenied: true };
    }
  }
  return { canBeDenied, isCertainlyDenied: false };
}

/** Whether an item may deny its request. */
export function canDeny({ rate, hits, refund, enforcement }: TakeItem): boolean {
  return (enforcement === 'enforce' || enforcement === 'quota') && !refund && !isCharge(rate, hits, refund);
}

/** Gives back only if the request passes: where that is known in a later step, in that one. */
export function isRefund({ refund, enforcement }: TakeItem): boolean {
  return refund && enforcement !== 'candidate';
}

/**
 * An item that denies what is asked of one part, and changes nothing itself: more than fits into one of its buckets. It
 * names that very bucket, since any other name might lie elsewhere. None where there is nothing to prevent: candidates
 * take in any case, and windows that count denied hits are not harmed by one, which would count there.
 */
function certainDenial(items: readonly TakeItem[], countDeniedHits: boolean): TakeItem[] {
  const harmed = items.find(
    ({ rate, enforcement }) => enforcement !== 'candidate' && !rate.countsDenied(countDeniedHits),
  );
  if (harmed === undefined) return [];
  const { key, tagLength, rate } = harmed;
  const hits = rate.reportedLimit + 1;
  return [{ key, tagLength, rate: rateWithoutCharges(rate), hits, refund: false, enforcement: 'enforce' }];
}
