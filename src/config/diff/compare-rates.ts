import type { WindowRate } from '../../limiter/fixed-window.js';
import { MAX_UINT32, type Rate } from '../../limiter/rate.js';
import type { TokenBucketRate } from '../../limiter/token-bucket.js';
import { UNIT_MICROS } from '../../limiter/window-unit.js';
import { describeRate } from '../../policy/describe.js';

/** Why one rate could deny what another lets pass. */
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
        | 'deeper_debt';
    }
  /** So many could pass in one window of the narrower rate, or at once where two windows meet. */
  | { readonly code: 'most_in_window' | 'most_at_once'; readonly most: bigint };

/** What is said of a narrowing, and of the way back; of debt there is none, as to give and to take it both tighten. */
interface Sentences {
  readonly tightens: string;
  readonly loosens?: string;
}

const SENTENCES: Readonly<Record<Narrowing['code'], Sentences>> = {
  closed: { tightens: 'every request is denied', loosens: 'every request was denied' },
  limited: { tightens: 'there was no limit', loosens: 'no limit' },
  fewer_per_window: { tightens: 'fewer per window', loosens: 'more per window' },
  denied_hits_count: {
    tightens: 'denied hits now count as well',
    loosens: 'denied hits no longer count',
  },
  fewer_at_once: { tightens: 'fewer at once', loosens: 'more at once' },
  slower_refill: { tightens: 'slower refill', loosens: 'faster refill' },
  fewer_in_the_long_run: { tightens: 'fewer in the long run', loosens: 'more in the long run' },
  charges_leave_debt: {
    tightens: 'charges may now exceed the limit, and requests wait until the debt is paid',
  },
  charges_are_denied: { tightens: 'charges that do not fit are now denied' },
  deeper_debt: { tightens: 'a deeper debt takes longer to pay', loosens: 'a smaller debt is paid sooner' },
  most_in_window: {
    tightens: 'previously, up to <most> could pass in one such window',
    loosens: 'up to <most> may now pass in one window of the old length',
  },
  most_at_once: {
    tightens: 'previously, up to <most> could pass at once at the boundary between two windows',
    loosens: 'up to <most> may now pass at once at the boundary between two windows',
  },
};

/** The reasons for which a change tightens, or the other way round loosens, as one text. */
export function reasonsOf(narrowings: readonly Narrowing[], effect: keyof Sentences): string {
  const sentences = narrowings.flatMap((one) => {
    const sentence = SENTENCES[one.code][effect];
    if (sentence === undefined) return [];
    return [sentence.replace('<most>', 'most' in one ? String(one.most) : '')];
  });
  return sentences.join(', ');
}

/**
 * Says why `after` could deny a request that `before` lets pass, for some sequence of requests; [] if it never does.
 * Undefined stands for unlimited. Exact, but for windows of a calendar against others that begin elsewhere: those are
 * compared by the most windows of one that a window of the other may touch, which is never too few.
 *
 * - Bucket and bucket: less capacity or slower refill.
 * - Windows of a list do not count what was denied, so a request for more than there is leaves more to the next ones.
 * - Window and window: in one window of `after`, `before` lets pass as many as all its windows in there hold together.
 * - Bucket, then window: in one window a bucket lets pass its capacity and what refills meanwhile.
 * - Window, then bucket: two windows' worth may come at once where one window ends and the next begins.
 * - Debt: with it, charges pass always, but what they leave makes requests wait; so it tightens to give it, to take it,
 *   and to deepen it.
 */
export function narrower(before: Rate | undefined, after: Rate | undefined): readonly Narrowing[] {
  if (after === undefined || isClosed(before)) return [];
  if (isClosed(after)) return [{ code: 'closed' }];
  if (before === undefined) return [{ code: 'limited' }];
  return [...narrowerLimit(before, after), ...narrowerDebt(before.maxDebt, after.maxDebt)];
}

/** A rate as it is shown beside another: `10 per minute`, `token bucket: 100 tokens, 10 every 1s`. */
export function shortRate(rate: Rate | undefined): string {
  return describeRate(rate).replace(/^window: /, '');
}

/**
 * Whether two rates are one, however they are spelled: 60 minutes and an hour, 2 tokens every 2s and 1 every 1s, a day
 * and a day of UTC. They have the same bucket then, and report the same. That of a list and of a single limit may be
 * one, too; what they differ in is told by {@link narrower}.
 */
export function isSameRate(one: Rate | undefined, other: Rate | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  if (one.maxDebt !== other.maxDebt) return false;
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

/** Whether nothing ever passes. */
function isClosed(rate: Rate | undefined): boolean {
  return rate?.kind === 'window' && rate.requestsPerUnit === 0;
}

function narrowerLimit(before: Rate, after: Rate): readonly Narrowing[] {
  if (after.kind === 'token_bucket') {
    return before.kind === 'token_bucket' ? narrowerBucket(before, after) : narrowerThanWindow(before, after);
  }
  if (before.kind === 'window' && sameWindows(before, after)) {
    if (after.requestsPerUnit < before.requestsPerUnit) return [{ code: 'fewer_per_window' }];
    return before.allOrNothing === true && after.allOrNothing !== true ? [{ code: 'denied_hits_count' }] : [];
  }
  const most = mostWithin(before, after);
  if (most <= BigInt(after.requestsPerUnit)) return [];
  return [{ code: 'most_in_window', most }];
}

function narrowerBucket(before: TokenBucketRate, after: TokenBucketRate): readonly Narrowing[] {
  const found: Narrowing[] = [];
  if (after.maxTokens < before.maxTokens) found.push({ code: 'fewer_at_once' });
  // A token takes p / q microseconds.
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

function narrowerDebt(before: number, after: number): readonly Narrowing[] {
  if (before === after) return [];
  if (before === 0) return [{ code: 'charges_leave_debt' }];
  if (after === 0) return [{ code: 'charges_are_denied' }];
  return after > before ? [{ code: 'deeper_debt' }] : [];
}

/** The most hits that a rate lets pass within one window of another. */
function mostWithin(rate: Rate, window: WindowRate): bigint {
  if (rate.kind === 'window') return BigInt(rate.requestsPerUnit) * BigInt(windowsWithin(rate, window));
  const refilled =
    (BigInt(lengthOf(window).most - 1) * BigInt(rate.tokensPerFill)) / BigInt(rate.fillIntervalMicros);
  return BigInt(rate.maxTokens) + refilled;
}

const HOUR = UNIT_MICROS.hour;
const DAY = UNIT_MICROS.day;

/** The shortest and the longest window, in microseconds. Zones have turned their clocks by two hours within a day. */
function lengthOf({ calendar, lengthMicros }: WindowRate): { readonly least: number; readonly most: number } {
  if (calendar === undefined || isPlainDay(calendar)) return { least: lengthMicros, most: lengthMicros };
  const [least, most] = { day: [1, 1], week: [7, 7], month: [28, 31], year: [365, 366] }[calendar.unit] as [
    number,
    number,
  ];
  return { least: least * DAY - 2 * HOUR, most: most * DAY + 2 * HOUR };
}

type Calendar = NonNullable<WindowRate['calendar']>;

/** Days of UTC are those of the epoch. */
function isPlainDay({ timeZone, unit }: Calendar): boolean {
  return unit === 'day' && /^(?:Etc\/)?(?:UTC|UCT|GMT|Zulu|Universal)$/i.test(timeZone);
}

function aligned({ calendar }: WindowRate): boolean {
  return calendar === undefined || isPlainDay(calendar);
}

function sameWindows(a: WindowRate, b: WindowRate): boolean {
  if (aligned(a) && aligned(b)) return a.lengthMicros === b.lengthMicros;
  return a.calendar?.timeZone === b.calendar?.timeZone && a.calendar?.unit === b.calendar?.unit;
}

/**
 * Windows that a longer one of the same calendar may touch, the windows of the outer key within one of the inner key.
 */
const WITHIN: Readonly<Record<Calendar['unit'], Readonly<Record<Calendar['unit'], number>>>> = {
  day: { day: 1, week: 7, month: 31, year: 366 },
  week: { day: 1, week: 1, month: 6, year: 54 },
  month: { day: 1, week: 2, month: 1, year: 12 },
  year: { day: 1, week: 2, month: 1, year: 1 },
};

/** The most windows of `inner` that one window of `outer` may touch. */
function windowsWithin(inner: WindowRate, outer: WindowRate): number {
  if (aligned(inner) && aligned(outer)) {
    const step = gcd(inner.lengthMicros, outer.lengthMicros);
    return 1 + Math.ceil((outer.lengthMicros - step) / inner.lengthMicros);
  }
  if (inner.calendar !== undefined && inner.calendar.timeZone === outer.calendar?.timeZone) {
    return WITHIN[inner.calendar.unit][outer.calendar.unit];
  }
  return Math.min(1 + Math.ceil(lengthOf(outer).most / lengthOf(inner).least), MAX_UINT32);
}

function gcd(a: number, b: number): number {
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}
