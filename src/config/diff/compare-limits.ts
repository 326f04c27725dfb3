import type { WindowRate } from '../../limiter/fixed-window.js';
import type { Rate } from '../../limiter/rate.js';
import { describeLimit } from '../../policy/describe.js';
import type { Rule } from '../../policy/rule.js';
import { isSame } from './change.js';

/** A rate with its holds; an unlimited rule has neither. */
export type Limit = Pick<Rule, 'rate' | 'hold'>;

/** A reason why one limit could deny a request that another limit allows. */
export type Narrowing = keyof typeof REASONS;

/** The text for a change that narrows a limit, and for the reverse change. */
const REASONS = {
  closed: { tightens: 'every request is now denied', loosens: 'every request was denied' },
  limited: { tightens: 'there was no limit', loosens: 'there is no longer a limit' },
  fewer_per_window: { tightens: 'fewer hits per window', loosens: 'more hits per window' },
  denied_hits_count: { tightens: 'denied hits now count as well', loosens: 'denied hits no longer count' },
  fewer_at_once: { tightens: 'fewer hits at once', loosens: 'more hits at once' },
  slower_refill: { tightens: 'slower refill', loosens: 'faster refill' },
  fewer_in_flight: { tightens: 'fewer concurrent requests', loosens: 'more concurrent requests' },
  // Two limits that cannot be compared each narrow the other, so such a change always tightens.
  other_kind: { tightens: 'the two limits cannot be compared', loosens: '' },
} as const;

/** Returns the reasons why a change tightens or loosens, joined by commas. */
export function reasonsOf(found: readonly Narrowing[], effect: 'tightens' | 'loosens'): string {
  return found.map((one) => REASONS[one][effect]).join(', ');
}

/**
 * Returns the reasons why `after` could deny a request that `before` allows; [] if it never does. Compares two token
 * buckets, two windows of the same length, and two limits on concurrent requests. Any other two limits, and limits with
 * different debts or holds, cannot be compared.
 */
export function narrowings(before: Limit, after: Limit): readonly Narrowing[] {
  const [was, is] = [before.rate, after.rate];
  if (is === undefined || deniesAll(was)) return [];
  if (deniesAll(is)) return ['closed'];
  if (was === undefined) return ['limited'];
  if (!isSame(holdWithoutRetry(before), holdWithoutRetry(after)) || !hasSameDebt(was, is))
    return ['other_kind'];
  if (was.kind === 'concurrency' && is.kind === 'concurrency')
    return is.max < was.max ? ['fewer_in_flight'] : [];
  if (was.kind === 'token_bucket' && is.kind === 'token_bucket') {
    // One token takes p / q microseconds.
    const isSlower = BigInt(is.p) * BigInt(was.q) > BigInt(was.p) * BigInt(is.q);
    return [
      ...(is.maxTokens < was.maxTokens ? one('fewer_at_once') : []),
      ...(isSlower ? one('slower_refill') : []),
    ];
  }
  if (was.kind !== 'window' || is.kind !== 'window' || !hasSameWindows(was, is)) return ['other_kind'];
  if (is.requestsPerUnit < was.requestsPerUnit) return ['fewer_per_window'];
  // Windows of a list do not count denied hits, so a request with too many hits leaves more for later requests.
  return was.allOrNothing === true && is.allOrNothing !== true ? ['denied_hits_count'] : [];
}

const one = (code: Narrowing): readonly Narrowing[] => [code];

/**
 * Returns a warning if buckets need less time to fill than before. A reload keeps the time until a bucket is full, so
 * an empty bucket stays empty until its old time is as near as the new one. Otherwise, returns ''.
 */
export function oldTimeWarning({ rate: was }: Limit, { rate: is }: Limit): string {
  if (was?.kind !== 'token_bucket' || is?.kind !== 'token_bucket') return '';
  const fillTime = (one: typeof was, other: typeof was): bigint =>
    BigInt(one.maxTokens) * BigInt(one.p) * BigInt(other.q);
  return fillTime(is, was) < fillTime(was, is)
    ? '; buckets in use keep their old time until full, unless "weir bucket reset" fills them'
    : '';
}

function hasSameDebt(a: Rate, b: Rate): boolean {
  return a.maxDebt === b.maxDebt && a.minChargeHits === b.minChargeHits;
}

/** Returns the fields of a hold that decide on requests: not those that only change a header. */
function holdWithoutRetry({ hold }: Limit): object | undefined {
  return hold && { ...hold, retryAfterSeconds: undefined };
}

/** Tells whether the rate denies every request. */
function deniesAll(rate: Rate | undefined): boolean {
  return rate?.kind === 'window' && rate.requestsPerUnit === 0;
}

function hasSameWindows(a: WindowRate, b: WindowRate): boolean {
  if (isEpochAligned(a) && isEpochAligned(b)) return a.lengthMicros === b.lengthMicros;
  return a.calendar?.timeZone === b.calendar?.timeZone && a.calendar?.unit === b.calendar?.unit;
}

/** Tells whether windows start at multiples of their length since the epoch, as days in UTC do. */
function isEpochAligned({ calendar }: WindowRate): boolean {
  if (calendar === undefined) return true;
  const isUtc = /^(?:Etc\/)?(?:UTC|UCT|GMT|Zulu|Universal)$/i.test(calendar.timeZone);
  return isUtc && calendar.unit === 'day';
}

/** Returns a short description of a limit: `10 per minute`, `token bucket (100 tokens, 10 every 1s)`. */
export function shortLimit(limit: Limit): string {
  return describeLimit(limit)
    .replace(/^window: /, '')
    .replace(/^token bucket: (.*)$/, 'token bucket ($1)');
}
