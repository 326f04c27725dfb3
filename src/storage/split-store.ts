import {
  type BucketStore,
  StorageError,
  type TakeItem,
  type TakeOutcome,
  type TakeResult,
} from '../limiter/bucket-store.js';
import { deniesRequest } from '../limiter/decide.js';
import { tokenBucketRate } from '../limiter/token-bucket.js';
import { deniesAnyway, isRefund, observed, replaced, UNDECIDED } from './in-steps.js';
import { NARROW_ITEMS } from './redis/wide-takes.js';
import { untouched } from './sharded/give-back.js';
import { type GiveBackOptions, type GiveBackStats, GiveBacks } from './sharded/give-backs.js';
import type { UndoableStore } from './sharded/request-parts.js';

/** Settings of {@link SplitStore}. */
export interface SplitStoreOptions extends GiveBackOptions {
  /** Keeps windows of one second, those of limit overrides included. */
  readonly perSecond: BucketStore;
  /** Keeps everything else. */
  readonly main: UndoableStore;
}

/** A bucket of one token that is asked for two: always limited, and so never written. */
const NEVER = tokenBucketRate(1, 1, 1_000_000);
const NEVER_HITS = 2;
/** No part of a bucket's name begins with it (policy/names/bucket-key.ts). */
const NEVER_KEY = '?';

/** What the windows of a second of one request say about it. */
interface Verdict {
  readonly denies: boolean;
  /** A quota that is not used up: the other quotas cannot deny. */
  readonly quotaLeft: boolean;
}

/**
 * Two stores as one (REDIS_PERSECOND). Requests whose items all belong to one go there as they are. A request with
 * items in both is decided as if by one store, in steps: what the windows of a second say, then the main store, which
 * denies if they do; token buckets are its own, so that it alone must decide in one step.
 *
 * - Windows count the hits of denied requests, so they may be asked first whatever comes of it. Refunds, which a denied
 *   request does not make, follow when it is known to pass; where a request takes and refunds in one and the same
 *   window of a second, it takes first.
 * - With `countDeniedHits` off they are only looked at first, and counted once the main store let the request pass.
 *   Between the two steps others may use up a window: such a request is denied, and the main store is given back what
 *   it took. What the request refunds there waits until the windows are counted, in one more step, as nobody could take
 *   back what others have taken by then; so it takes first there, too.
 * - Candidates count and give back whatever comes of the request, so they are asked in the first step only.
 *
 * Windows with debt and those of a list of limits, which a denied request does not touch, belong to the main store
 * whatever their length.
 *
 * An error of either store is the request's, unless the other one denies it. After one of a step behind the main
 * store's, nobody knows whether that step was done; the main store is given back what it took, and the failure policy
 * answers. What windows of a second counted before an error stays so, and what a main store may have taken that did not
 * answer.
 */
export class SplitStore implements BucketStore {
  private readonly options: SplitStoreOptions;
  private readonly giveBacks: GiveBacks;

  constructor(options: SplitStoreOptions) {
    this.options = options;
    this.giveBacks = new GiveBacks(options);
  }

  /** Longest that a request to both may take, microseconds. */
  get timeoutMicros(): number {
    return this.options.timeoutMicros;
  }

  get giveBackStats(): GiveBackStats {
    return this.giveBacks.stats;
  }

  take(
    items: readonly TakeItem[],
    deadlineMicros: number,
    connection?: unknown,
    mayWait = true,
  ): TakeResult | Promise<TakeResult> {
    const { perSecond, main } = this.options;
    const first = isPerSecond(items[0] as TakeItem);
    for (let i = 1; i < items.length; i++) {
      if (isPerSecond(items[i] as TakeItem) !== first)
        return this.takeFromBoth(items, deadlineMicros, connection, mayWait);
    }
    return (first ? perSecond : main).take(items, deadlineMicros, connection, mayWait);
  }

  /** Closes both, the main store last: it is given back what it took for requests that end with the other one. */
  async close(): Promise<void> {
    await this.options.perSecond.close();
    await this.options.main.close();
    await this.giveBacks.settled();
  }

  private async takeFromBoth(
    items: readonly TakeItem[],
    deadlineMicros: number,
    connection: unknown,
    mayWait: boolean,
  ): Promise<TakeResult> {
    const { perSecond, main, countDeniedHits, timeoutMicros, monotonicMicros } = this.options;
    const deadline = Math.min(deadlineMicros, monotonicMicros() + timeoutMicros);
    const seconds = items.filter(isPerSecond);
    const others = items.filter((item) => !isPerSecond(item));

    // A denied request counts nothing where denied hits do not count; else refunds are looked at only.
    const early = countDeniedHits
      ? seconds.map((item) => (isRefund(item) ? { ...item, hits: 0 } : item))
      : [...seconds, neverFits(seconds[0] as TakeItem)];
    const found = await perSecond.take(early, deadline, connection, mayWait);
    if (found instanceof StorageError) return this.deniedAnyway(items, others, found, deadline, connection);
    const verdict = verdictOf(seconds, found, others);

    const isLate = (item: TakeItem): boolean =>
      item.enforcement !== 'candidate' && (!countDeniedHits || item.refund);
    const late = seconds.filter(isLate);
    const isLast = late.length === 0 || (countDeniedHits && late.every(({ hits }) => hits === 0));
    const isReturned = (item: TakeItem): boolean => !isLast && !countDeniedHits && isRefund(item);
    const asked = others.map((item) => {
      if (isReturned(item)) return { ...item, hits: 0 };
      return verdict.quotaLeft ? observed(item) : item;
    });
    if (verdict.denies) asked.push(neverFits(asked[0] as TakeItem));
    const wide = asked.length > NARROW_ITEMS;
    const asking = { deadlineMicros: deadline, connection, mayWait, wide };
    const { result: decided, parts } = await main.takeUndoably(asked, asking);
    if (decided instanceof StorageError) {
      return deniesAnyway(seconds, found)
        ? merged(
            items,
            found,
            others.map(() => UNDECIDED),
          )
        : decided;
    }
    if (verdict.denies || deniesRequest(asked, decided) || isLast) return merged(items, found, decided);

    // What follows may end otherwise than with the main store's word.
    const undo = (): void => this.giveBacks.begin(parts, connection, wide);
    const counting = verdictOf(others, decided, []).quotaLeft ? late.map(observed) : late;
    const counted = await perSecond.take(counting, deadline, connection);
    if (counted instanceof StorageError) {
      undo();
      return counted;
    }
    const after = replaced(seconds, found, isLate, counted);
    if (deniesRequest(counting, counted)) {
      undo();
      return merged(items, after, untouched(others, decided, countDeniedHits));
    }
    const returning = others.filter(isReturned);
    if (returning.every(({ hits }) => hits === 0)) return merged(items, after, decided);
    const returned = await main.take(returning, deadline, connection);
    if (returned instanceof StorageError) {
      undo();
      return returned;
    }
    return merged(items, after, replaced(others, decided, isReturned, returned));
  }

  /**
   * Whether the main store denies what the store for seconds could not decide, as `error` says: whoever names a bucket
   * there must not get round the limits here. Nothing is taken.
   */
  private async deniedAnyway(
    items: readonly TakeItem[],
    others: readonly TakeItem[],
    error: StorageError,
    deadlineMicros: number,
    connection: unknown,
  ): Promise<TakeResult> {
    const asked = [...others, neverFits(others[0] as TakeItem)];
    const decided = await this.options.main.take(asked, deadlineMicros, connection);
    if (decided instanceof StorageError || !deniesAnyway(others, decided)) return error;
    return merged(
      items,
      items.filter(isPerSecond).map(() => UNDECIDED),
      decided,
    );
  }
}

/**
 * Whether the second Redis keeps it: windows of one second; those of several are of weir's own format, and lie with the
 * others.
 */
export function isPerSecond({ rate }: Pick<TakeItem, 'rate'>): boolean {
  if (rate.kind !== 'window' || rate.unit !== 'second' || rate.multiplier !== 1) return false;
  return rate.maxDebt === 0 && !rate.allOrNothing;
}

/** An item that denies its request, on the Redis Cluster slot of `beside`. */
function neverFits(beside: TakeItem): TakeItem {
  const { key, tagLength } = beside;
  return {
    key: key.slice(0, tagLength) + NEVER_KEY,
    tagLength,
    rate: NEVER,
    hits: NEVER_HITS,
    refund: false,
    enforcement: 'enforce',
  };
}

/** By the rules of BucketStore, of the windows of a second, given what else the request asks. */
function verdictOf(
  seconds: readonly TakeItem[],
  found: readonly TakeOutcome[],
  others: readonly TakeItem[],
): Verdict {
  let enforced = false;
  let quotas = 0;
  let quotasLimited = 0;
  seconds.forEach(({ enforcement }, i) => {
    const { limited } = found[i] as TakeOutcome;
    if (enforcement === 'quota') {
      quotas++;
      if (limited) quotasLimited++;
    } else if (limited && enforcement === 'enforce') {
      enforced = true;
    }
  });
  const usedUp = quotas > 0 && quotas === quotasLimited;
  // Other quotas have a say, too: if theirs are all used up, the main store denies by itself.
  const decidesAlone = usedUp && !others.some(({ enforcement }) => enforcement === 'quota');
  return { denies: enforced || decidesAlone, quotaLeft: quotas > quotasLimited };
}

/** The outcomes of both in the order of `items`; those of items that were added are left out. */
function merged(
  items: readonly TakeItem[],
  seconds: readonly TakeOutcome[],
  others: readonly TakeOutcome[],
): TakeOutcome[] {
  let second = 0;
  let other = 0;
  return items.map((item) => (isPerSecond(item) ? seconds[second++] : others[other++]) as TakeOutcome);
}
