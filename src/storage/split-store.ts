import {
  type BucketStore,
  StorageError,
  type TakeItem,
  type TakeOutcome,
  type TakeResult,
} from '../limiter/bucket-store.js';
import { tokenBucketRate } from '../limiter/token-bucket.js';
import { refundsOf, untouched } from './give-back.js';

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
  /**
   * Tells the connections to the main store apart, undefined while there is none. What was taken on one is not given
   * back on another, where it may be lost already. A store that is never away has none.
   */
  readonly mainConnection?: () => unknown;
  /** Told what is given back to the main store, as refunds, when that is sent and when it was answered. */
  readonly onGiveBack?: (refunds: readonly TakeItem[]) => void;
}

/** Requests that were given back what the main store had taken for them, since start. */
export interface GiveBackStats {
  /** The main store has it back. */
  readonly made: number;
  /** The main store refused it, or did not answer: it may have it back. */
  readonly failed: number;
  /** It was not sent, because the connection was lost on which it was taken. */
  readonly skipped: number;
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
 * An error of either store is the request's. After one of a step behind the main store's, nobody knows whether that
 * step was done; the main store is given back what it took, and the failure policy answers. What windows of a second
 * counted before an error stays so, and what a main store may have taken that did not answer.
 *
 * Giving back never makes the answer wait, and is tried once: a second time might give back more than was taken. It
 * leaves alone windows that began later ({@link refundsOf}).
 */
export class SplitStore implements BucketStore {
  private readonly options: SplitStoreOptions;
  private readonly givingBack = new Set<Promise<void>>();
  private readonly counts = { made: 0, failed: 0, skipped: 0 };

  constructor(options: SplitStoreOptions) {
    this.options = options;
  }

  /** Longest that a request to both may take, microseconds. */
  get timeoutMicros(): number {
    return this.options.timeoutMicros;
  }

  get giveBackStats(): GiveBackStats {
    return this.counts;
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
    await Promise.all(this.givingBack);
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
    if (found instanceof StorageError) return found;
    const verdict = verdictOf(seconds, found, others);

    const isLate = (item: TakeItem): boolean => !isCandidate(item) && (!countDeniedHits || item.refund);
    const late = seconds.filter(isLate);
    const isLast = late.length === 0 || (countDeniedHits && late.every(({ hits }) => hits === 0));
    const isReturned = (item: TakeItem): boolean => !isLast && !countDeniedHits && isRefund(item);
    const asked = others.map((item) => {
      if (isReturned(item)) return { ...item, hits: 0 };
      return verdict.quotaLeft ? observed(item) : item;
    });
    if (verdict.denies) asked.push(neverFits(asked[0] as TakeItem));
    const decided = await main.take(asked, deadline, connection, mayWait);
    if (decided instanceof StorageError) return decided;
    if (verdict.denies || denies(asked, decided) || isLast) return merged(items, found, decided);

    // What follows may end otherwise than with the main store's word.
    const mainConnection = this.options.mainConnection?.();
    const undo = (): void => this.giveBack(others, decided, connection, mainConnection);
    const counting = verdictOf(others, decided, []).quotaLeft ? late.map(observed) : late;
    const counted = await perSecond.take(counting, deadline, connection);
    if (counted instanceof StorageError) {
      undo();
      return counted;
    }
    const after = replaced(seconds, found, isLate, counted);
    if (denies(counting, counted)) {
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

  /** Gives the main store's takes back, once, and without anybody waiting for it. */
  private giveBack(
    items: readonly TakeItem[],
    outcomes: readonly TakeOutcome[],
    connection: unknown,
    takenOn: unknown,
  ): void {
    const { countDeniedHits, mainConnection } = this.options;
    const refunds = refundsOf(items, outcomes, countDeniedHits);
    if (refunds.length === 0) return;
    if (mainConnection !== undefined && (takenOn === undefined || mainConnection() !== takenOn)) {
      this.counts.skipped++;
      return;
    }
    const sent = this.sendBack(refunds, connection).finally(() => this.givingBack.delete(sent));
    this.givingBack.add(sent);
  }

  /** Never rejects. */
  private async sendBack(refunds: readonly TakeItem[], connection: unknown): Promise<void> {
    const { main, timeoutMicros, monotonicMicros, onGiveBack } = this.options;
    onGiveBack?.(refunds);
    // The time of the request may be over; this has its own.
    const result = await settled(() => main.take(refunds, monotonicMicros() + timeoutMicros, connection));
    if (result instanceof Error) this.counts.failed++;
    else this.counts.made++;
    onGiveBack?.(refunds);
  }
}

/** What a store answers, or the error that it breaks with: nobody waits who could be told of that one. */
async function settled(ask: () => TakeResult | Promise<TakeResult>): Promise<TakeResult | Error> {
  try {
    return await ask();
  } catch (error) {
    return error as Error;
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

/** Gives back only if the request passes. */
function isRefund(item: TakeItem): boolean {
  return item.refund && !isCandidate(item);
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

/** `outcomes` with those of a later step in the place of what was found for the items that it asked. */
function replaced(
  items: readonly TakeItem[],
  outcomes: readonly TakeOutcome[],
  isAsked: (item: TakeItem) => boolean,
  later: readonly TakeOutcome[],
): TakeOutcome[] {
  let at = 0;
  return items.map((item, i) => (isAsked(item) ? later[at++] : outcomes[i]) as TakeOutcome);
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
