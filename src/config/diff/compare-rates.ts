import type { WindowRate } from '../../limiter/fixed-window.js';
import { MAX_UINT32, type Rate } from '../../limiter/rate.js';
import type { TokenBucketRate } from '../../limiter/token-bucket.js';
import { UNIT_MICROS } from '../../limiter/window-unit.js';

/** A reason why one rate could deny a request that another rate allows. */
export type Narrowing =
  | {
      readonly code:
        | 'closed'
        | 'limited'
        | 'fewer_per_window'
        | 'denied_hits_count'
        | 'fewer_at_once'
        | 'slower_refill'
        | 'fewer_in_the_long_run'
        | 'charges_leave_debt'
        | 'charges_are_denied'
        | 'deeper_debt'
        | 'fewer_in_flight'
        | 'other_kind'
        | 'slots_expire_later'
        | 'hits_are_held'
        | 'use_is_charged'
        | 'hits_are_final'
        | 'other_estimate'
        | 'more_hits_held'
        | 'settled_until_earlier'
        | 'settled_until_later'
        | 'unknown_use_is_kept'
        | 'starts_without_hits'
        | 'starts_with_hits';
    }
  /** `most`: hits that can pass in one window of the narrower rate, or at once at the boundary between two windows. */
  | { readonly code: 'most_in_window' | 'most_at_once'; readonly most: bigint };

/**
 * The text for a narrowing and for its reverse. Adding and removing debt both tighten, so some reverses have no text.
 */
interface NarrowingTexts {
  readonly tightens: string;
  readonly loosens?: string;
}

const NARROWING_TEXTS: Readonly<Record<Narrowing['code'], NarrowingTexts>> = {
  closed: { tightens: 'every request is now denied', loosens: 'every request was denied' },
  limited: { tightens: 'there was no limit', loosens: 'there is no longer a limit' },
  fewer_per_window: { tightens: 'fewer hits per window', loosens: 'more hits per window' },
  denied_hits_count: {
    tightens: 'denied hits now count as well',
    loosens: 'denied hits no longer count',
  },
  fewer_at_once: { tightens: 'fewer hits at once', loosens: 'more hits at once' },
  slower_refill: { tightens: 'slower refill', loosens: 'faster refill' },
  fewer_in_the_long_run: { tightens: 'fewer hits in the long run', loosens: 'more hits in the long run' },
  charges_leave_debt: {
    tightens: 'charges may now exceed the remaining hits, and requests are denied until the debt is paid',
  },
  charges_are_denied: { tightens: 'charges that exceed the remaining hits are now denied' },
  deeper_debt: {
    tightens: 'a larger debt takes longer to pay off',
    loosens: 'a smaller debt is paid off sooner',
  },
  fewer_in_flight: {
    tightens: 'fewer concurrent requests',
    loosens: 'more concurrent requests',
  },
  other_kind: {
    tightens: 'a limit on concurrent requests and a limit over time can each deny what the other allows',
  },
  slots_expire_later: {
    tightens: 'a request whose end is not reported occupies its slots for longer',
    loosens: 'a request whose end is not reported occupies its slots for less time',
  },
  hits_are_held: {
    tightens: 'each request now holds an estimate until it ends',
    loosens: 'requests no longer hold an estimate',
  },
  use_is_charged: {
    tightens: 'use above the hits of the first call is now charged when the request ends',
    loosens: 'use above the hits of the first call is no longer charged',
  },
  hits_are_final: { tightens: 'unused hits are no longer given back when the request ends' },
  other_estimate: { tightens: 'the old and the new estimate can each be larger' },
  more_hits_held: {
    tightens: 'each request holds more hits until it ends',
    loosens: 'each request holds fewer hits until it ends',
  },
  settled_until_earlier: {
    tightens: 'a request that ends after the new time no longer gives back unused hits',
  },
  settled_until_later: {
    tightens: 'a request that ends before the new time is now charged for use above its hold',
  },
  unknown_use_is_kept: {
    tightens: 'a request that ends with an unknown use no longer gives back its hits',
    loosens: 'a request that ends with an unknown use now gives back its hits',
  },
  starts_without_hits: {
    tightens: 'a call with 0 hits now starts a request, instead of only reading the bucket',
  },
  starts_with_hits: { tightens: 'a call with hits and without a hold token now starts a request' },
  most_in_window: {
    tightens: 'previously, one window of the new length allowed up to <most> hits',
    loosens: 'one window of the old length may now allow up to <most> hits',
  },
  most_at_once: {
    tightens: 'previously, the boundary between two windows allowed up to <most> hits at once',
    loosens: 'the boundary between two windows may now allow up to <most> hits at once',
  },
};

/** Returns the reasons why a change tightens or loosens, joined by commas. */
export function reasonsOf(found: readonly Narrowing[], effect: keyof NarrowingTexts): string {
  const sentences = found.flatMap((one) => {
    const sentence = NARROWING_TEXTS[one.code][effect];
    if (sentence === undefined) return [];
    return [sentence.replace('<most>', 'most' in one ? String(one.most) : '')];
  });
  return sentences.join(', ');
}

/**
 * Returns the reasons why `after` could deny a request that `before` allows, for some sequence of requests; [] if it
 * never does. Undefined means unlimited. The result is exact, except for calendar windows compared to windows with
 * another alignment: these use an upper bound for the number of windows that one window can overlap.
 *
 * - Bucket and bucket: `after` has less capacity or a slower refill.
 * - Windows of a list do not count denied hits, so a request with too many hits leaves more for later requests.
 * - Window and window: during one window of `after`, `before` allows the sum of all its windows that overlap it.
 * - Bucket, then window: during one window, a bucket allows its capacity plus the tokens that refill in that time.
 * - Window, then bucket: two windows' worth of hits may arrive at once at the boundary between two windows.
 * - Debt: with `allow_debt`, charges are always allowed, but later requests wait until it is paid. Adding, removing and
 *   deepening debt therefore all tighten.
 */
export function rateNarrowings(before: Rate | undefined, after: Rate | undefined): readonly Narrowing[] {
  if (after === undefined || deniesAll(before)) return [];
  if (deniesAll(after)) return [{ code: 'closed' }];
  if (before === undefined) return [{ code: 'limited' }];
  return [...narrowerLimit(before, after), ...narrowerDebt(chargedDebt(before), chargedDebt(after))];
}

/**
 * Tells whether two rates are equal, even if they are written differently: 60 minutes and 1 hour, 2 tokens every 2s and
 * 1 every 1s, a day and a calendar day in UTC. Equal rates share a bucket and report the same values. A limit of a list
 * and a single limit can be equal, too; {@link rateNarrowings} reports how they differ.
 */
export function isSameRate(one: Rate | undefined, other: Rate | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  if (one.maxDebt !== other.maxDebt || one.minChargeHits !== other.minChargeHits) return false;
  if (one.kind === 'concurrency') return other.kind === 'concurrency' && one.max === other.max;
  if (one.kind === 'window') {
    return (
      other.kind === 'window' && one.requestsPerUnit === other.requestsPerUnit && sameWindows(one, other)
    );
  }
  return (
    other.kind === 'token_bucket' &&
    one.maxTokens === other.maxTokens &&
    one.p === other.p &&
    one.q === other.q
  );
}

/** Tells whether the rate denies every request. */
export function deniesAll(rate: Rate | undefined): boolean {
  return rate?.kind === 'window' && rate.requestsPerUnit === 0;
}

function narrowerLimit(before: Rate, after: Rate): readonly Narrowing[] {
  if (before.kind === 'concurrency' || after.kind === 'concurrency') {
    if (before.kind !== 'concurrency' || after.kind !== 'concurrency') return [{ code: 'other_kind' }];
    return after.max < before.max ? [{ code: 'fewer_in_flight' }] : [];
  }
  if (after.kind === 'token_bucket') {
    return before.kind === 'token_bucket' ? narrowerBucket(before, after) : narrowerThanWindow(before, after);
  }
  if (before.kind === 'window' && sameWindows(before, after)) {
    if (after.requestsPerUnit < before.requestsPerUnit) return [{ code: 'fewer_per_window' }];
    return before.allOrNothing === true && after.allOrNothing !== true ? [{ code: 'denied_hits_count' }] : [];
  }
  const most = maxHitsWithin(before, after);
  if (most <= BigInt(after.requestsPerUnit)) return [];
  return [{ code: 'most_in_window', most }];
}

function narrowerBucket(before: TokenBucketRate, after: TokenBucketRate): readonly Narrowing[] {
  const found: Narrowing[] = [];
  if (after.maxTokens < before.maxTokens) found.push({ code: 'fewer_at_once' });
  // One token takes p / q microseconds.
  if (BigInt(after.p) * BigInt(before.q) > BigInt(before.p) * BigInt(after.q))
    found.push({ code: 'slower_refill' });
  return found;
}

function narrowerThanWindow(before: WindowRate, after: TokenBucketRate): readonly Narrowing[] {
  const found: Narrowing[] = [];
  const atOnce = 2 * before.requestsPerUnit;
  if (after.maxTokens < atOnce) {
    found.push({ code: 'most_at_once', most: BigInt(atOnce) });
  }
  const length = BigInt(lengthOf(before).least);
  if (
    BigInt(after.tokensPerFill) * length <
    BigInt(before.requestsPerUnit) * BigInt(after.fillIntervalMicros)
  ) {
    found.push({ code: 'fewer_in_the_long_run' });
  }
  return found;
}

/** Returns the debt that charges can leave. Without charges, only settlements of holds leave debt. */
function chargedDebt({ maxDebt, minChargeHits }: Rate): number {
  return Number.isFinite(minChargeHits) ? maxDebt : 0;
}

function narrowerDebt(before: number, after: number): readonly Narrowing[] {
  if (before === after) return [];
  if (before === 0) return [{ code: 'charges_leave_debt' }];
  if (after === 0) return [{ code: 'charges_are_denied' }];
  return after > before ? [{ code: 'deeper_debt' }] : [];
}

/** Returns the maximum number of hits that a rate allows during one window of another rate. */
function maxHitsWithin(rate: TokenBucketRate | WindowRate, window: WindowRate): bigint {
  if (rate.kind === 'window') return BigInt(rate.requestsPerUnit) * BigInt(maxWindowsWithin(rate, window));
  const refilled =
    (BigInt(lengthOf(window).most - 1) * BigInt(rate.tokensPerFill)) / BigInt(rate.fillIntervalMicros);
  return BigInt(rate.maxTokens) + refilled;
}

const HOUR = UNIT_MICROS.hour;
const DAY = UNIT_MICROS.day;

/**
 * Returns the shortest and the longest length of a window, in microseconds. Some time zones have moved their clocks by
 * two hours in one day.
 */
function lengthOf({ calendar, lengthMicros }: WindowRate): { readonly least: number; readonly most: number } {
  if (calendar === undefined || isPlainDay(calendar)) return { least: lengthMicros, most: lengthMicros };
  const [least, most] = { day: [1, 1], week: [7, 7], month: [28, 31], year: [365, 366] }[calendar.unit] as [
    number,
    number,
  ];
  return { least: least * DAY - 2 * HOUR, most: most * DAY + 2 * HOUR };
}

type Calendar = NonNullable<WindowRate['calendar']>;

/** Tells whether the calendar has plain days: UTC days start at multiples of 24 hours since the epoch. */
function isPlainDay({ timeZone, unit }: Calendar): boolean {
  return unit === 'day' && /^(?:Etc\/)?(?:UTC|UCT|GMT|Zulu|Universal)$/i.test(timeZone);
}

function isEpochAligned({ calendar }: WindowRate): boolean {
  return calendar === undefined || isPlainDay(calendar);
}

function sameWindows(a: WindowRate, b: WindowRate): boolean {
  if (isEpochAligned(a) && isEpochAligned(b)) return a.lengthMicros === b.lengthMicros;
  return a.calendar?.timeZone === b.calendar?.timeZone && a.calendar?.unit === b.calendar?.unit;
}

/** Maximum number of windows (outer key) that one window of the same calendar (inner key) can overlap. */
const MAX_WINDOWS_WITHIN: Readonly<Record<Calendar['unit'], Readonly<Record<Calendar['unit'], number>>>> = {
  day: { day: 1, week: 7, month: 31, year: 366 },
  week: { day: 1, week: 1, month: 6, year: 54 },
  month: { day: 1, week: 2, month: 1, year: 12 },
  year: { day: 1, week: 2, month: 1, year: 1 },
};

/** Returns the maximum number of windows of `inner` that one window of `outer` can overlap. */
function maxWindowsWithin(inner: WindowRate, outer: WindowRate): number {
  if (isEpochAligned(inner) && isEpochAligned(outer)) {
    const step = gcd(inner.lengthMicros, outer.lengthMicros);
    return 1 + Math.ceil((outer.lengthMicros - step) / inner.lengthMicros);
  }
  if (inner.calendar !== undefined && inner.calendar.timeZone === outer.calendar?.timeZone) {
    return MAX_WINDOWS_WITHIN[inner.calendar.unit][outer.calendar.unit];
  }
  return Math.min(1 + Math.ceil(lengthOf(outer).most / lengthOf(inner).least), MAX_UINT32);
}

function gcd(a: number, b: number): number {
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}
