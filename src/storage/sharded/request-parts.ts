import {
  type BucketStore,
  StorageError,
  type TakeItem,
  type TakeOutcome,
  type TakeResult,
} from '../../limiter/bucket-store.js';
import { deniesRequest } from '../../limiter/decide.js';
import { chargelessRate } from '../../limiter/local-rate.js';
import { isBeyondLimit, isCharge } from '../../limiter/rate.js';
import { deniesAnyway, isRefund, observed } from '../in-steps.js';
import type { Asking, Part, Shard, ShardMap } from './shard.js';

/** Items, or parts, that are looked at in one stretch: well below a millisecond. */
export const ITEMS_OF_A_STRETCH = 256;

/** What a request asks of one part. */
export class RequestPart {
  readonly part: Part;
  readonly shard: Shard | undefined;
  readonly items: TakeItem[] = [];
  /** Where they stand in the request. */
  readonly places: number[] = [];
  /** What the shard is asked in the first step; it may have one item more at its end. */
  asked: readonly TakeItem[] = this.items;
  result: TakeResult | undefined;
  /** {@link Shard.holds}, when it answered. */
  takenOn: unknown;

  constructor(part: Part, shard: Shard | StorageError) {
    this.part = part;
    this.shard = shard instanceof StorageError ? undefined : shard;
    if (shard instanceof StorageError) this.result = shard;
  }

  /** Asks the server, unless it is known what comes of it, and notes what it answers: at once, or later. */
  ask(asking: Asking): Promise<void> | undefined {
    const { shard } = this;
    if (shard === undefined || this.result !== undefined) return undefined;
    const note = (result: TakeResult): void => {
      this.result = result;
      this.takenOn = shard.holds;
    };
    const result = shard.takePart({ part: this.part, items: this.asked, ...asking });
    if (result instanceof Promise) return result.then(note);
    note(result);
    return undefined;
  }

  /** Why it was not decided; undefined where it was, or was not asked yet. */
  get error(): StorageError | undefined {
    return this.result instanceof StorageError ? this.result : undefined;
  }

  /** Of a part that decided. */
  get outcomes(): readonly TakeOutcome[] {
    return this.result as readonly TakeOutcome[];
  }

  /** Whether the shard decided, and took what was asked. */
  get took(): boolean {
    const { result } = this;
    return result !== undefined && !(result instanceof StorageError) && !deniesRequest(this.asked, result);
  }

  /** Whether the shard decided, and its word is enough to deny the request. */
  get denies(): boolean {
    const { result } = this;
    return result !== undefined && !(result instanceof StorageError) && deniesAnyway(this.items, result);
  }
}

/** A store whose takes can be undone. */
export interface UndoableStore extends BucketStore {
  /** {@link BucketStore.take}, which tells its parts, too: what they took can be given back (GiveBacks). */
  takeUndoably(items: readonly TakeItem[], asking: Asking): Promise<Taken>;
}

/** What came of a take that may have to be undone. */
export interface Taken {
  readonly result: TakeResult;
  readonly parts: readonly RequestPart[];
}

/** Asks one server for a whole request. */
export async function takeFromOne(
  part: Part,
  shard: Shard,
  items: readonly TakeItem[],
  asking: Asking,
): Promise<Taken> {
  const whole = new RequestPart(part, shard);
  whole.asked = items;
  await whole.ask(asking);
  return { result: whole.result as TakeResult, parts: [whole] };
}

/**
 * Divides a request by where its buckets lie: parts in the order in which they are named. The result of one without a
 * server says why.
 */
export function* divide(items: readonly TakeItem[], map: ShardMap): Generator<void, readonly RequestPart[]> {
  const parts = new Map<Part, RequestPart>();
  for (let i = 0; i < items.length; i++) {
    if (i > 0 && i % ITEMS_OF_A_STRETCH === 0) yield;
    const item = items[i] as TakeItem;
    const name = map.partOf(item);
    let part = parts.get(name);
    if (part === undefined) {
      part = new RequestPart(name, map.shardOf(name));
      parts.set(name, part);
    }
    part.items.push(item);
    part.places.push(i);
  }
  return [...parts.values()];
}

/**
 * Says what each of several parts is asked in the first step, and returns whether refunds wait for a second one. A
 * request that nothing can deny is asked for as it is. Of any other
 * - refunds are looked at only, as nobody could take back what others have taken by then;
 * - quotas that lie on several parts are watched, because none of these knows whether all are used up;
 * - one that is denied for certain, because it asks for more than a limit ever lets pass, is denied by each part, so
 *   that nothing is taken of which some would have to be given back. So is one of which some part cannot be asked
 *   (`isRefused`): the others are asked only whether they deny it.
 */
export function* prepare(
  items: readonly TakeItem[],
  parts: readonly RequestPart[],
  countDeniedHits: boolean,
  isRefused: boolean,
): Generator<void, boolean> {
  const { canBeDenied, isHopeless } = outlookOf(items);
  if (!canBeDenied) return false;
  const isDenied = isHopeless || isRefused;
  const watchesQuotas = quotaParts(parts) > 1;
  let hasRefunds = false;
  yield* inStretches(parts, (part) => {
    const asked = part.items.map((item) => {
      if (!isRefund(item)) return watchesQuotas ? observed(item) : item;
      if (item.hits > 0) hasRefunds = true;
      return { ...item, hits: 0 };
    });
    if (isDenied) asked.push(...certainDenial(part.items, countDeniedHits));
    part.asked = asked;
  });
  return hasRefunds;
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

/** Whether any item can deny its request, and whether one does for certain. */
function outlookOf(items: readonly TakeItem[]): {
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

/** On how many parts there are quotas. */
function quotaParts(parts: readonly RequestPart[]): number {
  let count = 0;
  for (const { items } of parts) if (items.some(({ enforcement }) => enforcement === 'quota')) count++;
  return count;
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
  return [{ key, tagLength, rate: chargelessRate(rate), hits, refund: false, enforcement: 'enforce' }];
}
