import type { WindowRate } from '../../limiter/fixed-window.js';
import { MAX_UINT32, type Rate } from '../../limiter/rate.js';
import type { TokenBucketRate } from '../../limiter/token-bucket.js';
import { UNIT_MICROS } from '../../limiter/window-unit.js';
import { describeRate } from '../../policy/describe.js';

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
export function narrower(before: Rate | undefined, after: Rate | undefined): readonly string[] {
  if (after === undefined || isClosed(before)) return [];
  if (isClosed(after)) return ['every request is denied'];
  if (before === undefined) return ['there was no limit'];
  return [...narrowerLimit(before, after), ...narrowerDebt(before.maxDebt, after.maxDebt)];
}

/** A rate as it is shown beside another: `10 per minute`, `token bucket: 100 tokens, 10 every 1s`. */
export function shortRate(rate: Rate | undefined): string {
  return describeRate(rate).replace(/^window: /, '');
}

/** Whether nothing ever passes. */
function isClosed(rate: Rate | undefined): boolean {
  return rate?.kind === 'window' && rate.requestsPerUnit === 0;
}

function narrowerLimit(before: Rate, after: Rate): readonly string[] {
  if (after.kind === 'token_bucket') {
    return before.kind === 'token_bucket' ? narrowerBucket(before, after) : narrowerThanWindow(before, after);
  }
  if (before.kind === 'window' && sameWindows(before, after)) {
    if (after.requestsPerUnit < before.requestsPerUnit) return ['fewer per window'];
    return before.allOrNothing === true && after.allOrNothing !== true
      ? ['hits that were denied count, too']
      : [];
  }
  const most = mostWithin(before, after);
  if (most <= BigInt(after.requestsPerUnit)) return [];
  return [`in one such window up to ${most} could pass`];
}

function narrowerBucket(before: TokenBucketRate, after: TokenBucketRate): readonly string[] {
  const reasons: string[] = [];
  if (after.maxTokens < before.maxTokens) reasons.push('fewer at once');
  // A token takes p / q microseconds.
  if (BigInt(after.p) * BigInt(before.q) > BigInt(before.p) * BigInt(after.q)) reasons.push('slower refill');
  return reasons;
}

function narrowerThanWindow(before: WindowRate, after: TokenBucketRate): readonly string[] {
  const reasons: string[] = [];
  const atOnce = 2 * before.requestsPerUnit;
  if (after.maxTokens < atOnce) {
    reasons.push(`up to ${atOnce} could pass at once, where one window ends and the next begins`);
  }
  const length = BigInt(lengthOf(before).least);
  if (
    BigInt(after.tokensPerFill) * length <
    BigInt(before.requestsPerUnit) * BigInt(after.fillIntervalMicros)
  ) {
    reasons.push('fewer in the long run');
  }
  return reasons;
}

function narrowerDebt(before: number, after: number): readonly string[] {
  if (before === after) return [];
  if (before === 0) return ['charges are taken past empty, and requests wait until they are paid'];
  if (after === 0) return ['charges that do not fit are denied'];
  return after > before ? ['a deeper debt takes longer to pay'] : [];
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
