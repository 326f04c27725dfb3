import {
  type BucketStore,
  StorageError,
  type TakeItem,
  type TakeOutcome,
  type TakeResult,
} from '../limiter/bucket-store.js';
import { tokenBucketRate } from '../limiter/token-bucket.js';

/** Settings of {@link SplitStore}. */
export interface SplitStoreOptions {
  /** Keeps windows of one second, those of limit overrides included. */
  readonly perSecond: BucketStore;
  /** Keeps everything else. */
  readonly main: BucketStore;
  /** Longest that a request to both may take, microseconds: the larger of their timeouts. */
  readonly timeoutMicros: number;
  /** As both stores do. */
  readonly countDeniedHits: boolean;
  /** Clock of deadlines, microseconds. */
  readonly monotonicMicros: () => number;
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
 *   Between the two steps others may use up a window: such a request is denied, but what it took from the main store
 *   stays taken.
 * - Candidates count and give back whatever comes of the request, so they are asked in the first step only.
 *
 * Windows with debt and those of a list of limits, which a denied request does not touch, belong to the main store
 * whatever their length.
 *
 * An error of either store is the request's; what was counted or taken before it stays so.
 */
export class SplitStore implements BucketStore {
  private readonly options: SplitStoreOptions;

  constructor(options: SplitStoreOptions) {
    this.options = options;
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

  /** Closes both. */
  async close(): Promise<void> {
    await Promise.all([this.options.perSecond.close(), this.options.main.close()]);
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
      ? seconds.map((item) => (item.refund && !isCandidate(item) ? { ...item, hits: 0 } : item))
      : [...seconds, neverFits(seconds[0] as TakeItem)];
    const found = await perSecond.take(early, deadline, connection, mayWait);
    if (found instanceof StorageError) return found;
    const verdict = verdictOf(seconds, found, others);

    const asked = verdict.quotaLeft ? others.map(observed) : [...others];
    if (verdict.denies) asked.push(neverFits(asked[0] as TakeItem));
    const decided = await main.take(asked, deadline, connection, mayWait);
    if (decided instanceof StorageError) return decided;
    if (verdict.denies || denies(asked, decided)) return merged(items, found, decided);

    const isLate = (item: TakeItem): boolean => !isCandidate(item) && (!countDeniedHits || item.refund);
    const late = seconds.filter(isLate);
    if (late.length === 0 || (countDeniedHits && late.every(({ hits }) => hits === 0))) {
      return merged(items, found, decided);
    }
    const quotaLeft = verdictOf(asked, decided, []).quotaLeft;
    const counted = await perSecond.take(quotaLeft ? late.map(observed) : late, deadline, connection);
    if (counted instanceof StorageError) return counted;
    let at = 0;
    const after = seconds.map((item, i) => (isLate(item) ? counted[at++] : found[i]) as TakeOutcome);
    return merged(items, after, decided);
  }
}

/** Windows of one second; those of several are of weir's own format, and lie with the others. */
function isPerSecond({ rate }: TakeItem): boolean {
  if (rate.kind !== 'window' || rate.unit !== 'second' || rate.multiplier !== 1) return false;
  return rate.maxDebt === 0 && !rate.allOrNothing;
}

function isCandidate({ enforcement }: TakeItem): boolean {
  return enforcement === 'candidate';
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

/** A quota that cannot deny is watched; its outcome is the same. */
function observed(item: TakeItem): TakeItem {
  return item.enforcement === 'quota' ? { ...item, enforcement: 'observe' } : item;
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

/** Whether a store denied what it was asked. */
function denies(items: readonly TakeItem[], outcomes: readonly TakeOutcome[]): boolean {
  return verdictOf(items, outcomes, []).denies;
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
