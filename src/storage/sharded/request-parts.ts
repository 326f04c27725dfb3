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
import { untouched } from './give-back.js';
import type { Asking, Part, Shard, ShardMap } from './shard.js';

/** Items, or parts, that are looked at in one stretch: well below a millisecond. */
export const ITEMS_OF_A_STRETCH = 256;

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
  readonly which?: (item: TakeItem) => boolean;
}

/** What a request asks of one part. */
export class RequestPart {
  readonly items: TakeItem[] = [];
  /** Where they stand in the request. */
  readonly places: number[] = [];
  /** What is known of the items. */
  found: readonly TakeOutcome[] = [];
  /** Whether its refunds wait for a step of their own. */
  defersRefunds = false;
  /** {@link Shard.holds}, when it answered. */
  takenOn: unknown;
  readonly part: Part;
  readonly map: ShardMap;
  readonly shard: Shard | undefined;
  /** What the shard was asked for last, which may have one item more at its end, and what it answered. */
  #asked: readonly TakeItem[] = [];
  #result: TakeResult | undefined;
  #which: Step['which'];
  #isGivenBack = false;

  constructor(map: ShardMap, part: Part) {
    const shard = map.shardOf(part);
    this.part = part;
    this.map = map;
    this.shard = shard instanceof StorageError ? undefined : shard;
    if (shard instanceof StorageError) this.#result = shard;
  }

  /** Asks the server, unless it is known that it cannot be asked, and notes what it answers: at once, or later. */
  ask(asking: Asking, asked: readonly TakeItem[], which?: Step['which']): Promise<void> | undefined {
    const { shard, part } = this;
    if (shard === undefined || this.error !== undefined) return undefined;
    this.#asked = asked;
    this.#which = which;
    const result = shard.takePart({ part, items: asked, ...asking });
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
      ({ enforcement }, i) => enforcement === 'enforce' && this.found[i]?.limited === true,
    );
  }

  /** Whether it has a quota that is not used up. */
  get hasQuotaLeft(): boolean {
    return this.items.some(
      ({ enforcement }, i) => enforcement === 'quota' && this.found[i]?.limited === false,
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
    const asked = this.#asked;
    return deniesRequest(asked, outcomes) ? undefined : { asked, outcomes };
  }

  /** {@link taken}, for who gives it back. */
  takeBack(): RequestPart['taken'] {
    expectState(!this.#isGivenBack, 'what a request took is given back once');
    this.#isGivenBack = true;
    return this.taken;
  }

  /** What it tells of a request that is denied. */
  outcomesOfDenial(countDeniedHits: boolean): readonly TakeOutcome[] {
    if (this.error !== undefined) return this.items.map(() => UNDECIDED);
    const { taken } = this;
    if (taken === undefined) return this.found;
    return this.#with(untouched(taken.asked, taken.outcomes, countDeniedHits), this.#which);
  }

  /** Its refunds were made. */
  noteRefunds(outcomes: readonly TakeOutcome[]): void {
    this.found = this.#with(outcomes, isRefund);
  }

  #note(shard: Shard, result: TakeResult): void {
    this.#result = result;
    this.takenOn = shard.holds;
    if (!(result instanceof StorageError)) this.found = this.#with(result, this.#which);
  }

  /** What is known, with what a later step has found for the items that it asked for. */
  #with(later: readonly TakeOutcome[], which: Step['which']): readonly TakeOutcome[] {
    if (which === undefined) return later;
    let at = 0;
    return this.items.map((item, i) => (which(item) ? later[at++] : this.found[i]) as TakeOutcome);
  }
}

/**
 * Divides a request by where its buckets lie: parts in the order in which they are named. The result of one without a
 * server says why.
 */
export function* divide(
  items: readonly TakeItem[],
  mapOf: (item: TakeItem) => ShardMap,
): Generator<void, readonly RequestPart[]> {
  const parts: RequestPart[] = [];
  const known = new Map<ShardMap, Map<Part, RequestPart>>();
  for (let i = 0; i < items.length; i++) {
    if (i > 0 && i % ITEMS_OF_A_STRETCH === 0) yield;
    const item = items[i] as TakeItem;
    const map = mapOf(item);
    const name = map.partOf(item);
    let ofMap = known.get(map);
    if (ofMap === undefined) {
      ofMap = new Map();
      known.set(map, ofMap);
    }
    let part = ofMap.get(name);
    if (part === undefined) {
      part = new RequestPart(map, name);
      ofMap.set(name, part);
      parts.push(part);
    }
    part.items.push(item);
    part.places.push(i);
  }
  return parts;
}

/** What a step asks for of the items of one part. */
export function askedFor(
  items: readonly TakeItem[],
  { defersRefunds, watchesQuotas, isDenied, which = () => true }: Step,
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
  parts: readonly RequestPart[],
  outcomesOf: (part: RequestPart) => readonly TakeOutcome[],
): Generator<void, readonly TakeOutcome[]> {
  const outcomes = new Array<TakeOutcome>(items.length);
  yield* inStretches(parts, (part) => {
    const found = outcomesOf(part);
    part.places.forEach((place, i) => {
      outcomes[place] = found[i] as TakeOutcome;
    });
  });
  return outcomes;
}

/** Does `work` with each, and yields now and then. */
export function* inStretches<T>(each: readonly T[], work: (one: T) => void): Generator<void, void> {
  for (let i = 0; i < each.length; i++) {
    if (i > 0 && i % ITEMS_OF_A_STRETCH === 0) yield;
    work(each[i] as T);
  }
}

/** Whether any item can deny its request, and whether one does for certain: it asks for more than its limit. */
export function outlookOf(items: readonly TakeItem[]): {
  readonly canBeDenied: boolean;
  readonly isHopeless: boolean;
} {
  let canBeDenied = false;
  for (const item of items) {
    if (!canDeny(item)) continue;
    canBeDenied = true;
    const { rate, hits, refund, enforcement } = item;
    if (enforcement === 'enforce' && hits > 0 && isBeyondLimit(rate, hits, refund)) {
      return { canBeDenied, isHopeless: true };
    }
  }
  return { canBeDenied, isHopeless: false };
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
  const beside = items.find(
    ({ rate, enforcement }) => enforcement !== 'candidate' && !rate.countsDenied(countDeniedHits),
  );
  if (beside === undefined) return [];
  const { key, tagLength, rate } = beside;
  const hits = rate.reportedLimit + 1;
  return [{ key, tagLength, rate: rateWithoutCharges(rate), hits, refund: false, enforcement: 'enforce' }];
}
