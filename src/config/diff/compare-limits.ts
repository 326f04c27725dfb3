import { describeLimit } from '../../policy/describe.js';
import type { HoldSpec, Rule } from '../../policy/rule.js';
import { deniesAll, isSameRate, type Narrowing, rateNarrowings } from './compare-rates.js';

/** A rate with its holds; an unlimited rule has neither. */
export type Limit = Pick<Rule, 'rate' | 'hold'>;

/** Returns the reasons why `after` could deny a request that `before` allows; see {@link rateNarrowings}. */
export function narrowings(before: Limit, after: Limit): readonly Narrowing[] {
  const found = rateNarrowings(before.rate, after.rate);
  const [was, is] = [before.rate, after.rate];
  if (was === undefined || is === undefined || deniesAll(was) || deniesAll(is)) return found;
  const slots = [was, is].filter(({ kind }) => kind === 'concurrency').length;
  if (slots === 2) return [...found, ...narrowerSlots(before.hold, after.hold)];
  // Two kinds of limits are not compared further.
  return slots === 1 ? found : [...found, ...narrowerHold(before, after)];
}

/** Returns a short description of a limit: `10 per minute`, `token bucket (100 tokens, 10 every 1s)`. */
export function shortLimit(limit: Limit): string {
  return describeLimit(limit)
    .replace(/^window: /, '')
    .replace(/^token bucket: (.*)$/, 'token bucket ($1)');
}

/** Tells whether two limits are equal, even if they are written differently; see {@link isSameRate}. */
export function isSameLimit(one: Limit | undefined, other: Limit | undefined): boolean {
  return isSameRate(one?.rate, other?.rate) && isSameHold(one?.hold, other?.hold);
}

function isSameHold(one: HoldSpec | undefined, other: HoldSpec | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  const { expiresAfterMillis, unknown, pair, retryAfterSeconds } = one;
  return (
    other.expiresAfterMillis === expiresAfterMillis &&
    other.amount === one.amount &&
    other.unknown === unknown &&
    other.pair === pair &&
    other.retryAfterSeconds === retryAfterSeconds
  );
}

function holdsFirstCall(hold: HoldSpec | undefined): boolean {
  return hold?.amount === undefined;
}

function largerEstimate(was: HoldSpec, is: HoldSpec): Narrowing[] {
  if (was.amount !== undefined && is.amount !== undefined) {
    return is.amount > was.amount ? [{ code: 'more_hits_held' }] : [];
  }
  return holdsFirstCall(was) && holdsFirstCall(is) ? [] : [{ code: 'other_estimate' }];
}

/** A request whose end is never reported occupies its slots until they expire. */
function narrowerSlots(before: HoldSpec | undefined, after: HoldSpec | undefined): readonly Narrowing[] {
  const [was, is] = [before?.expiresAfterMillis ?? 0, after?.expiresAfterMillis ?? 0];
  return is > was ? [{ code: 'slots_expire_later' }] : [];
}

/**
 * Compares the holds of two limits over time. A settlement gives hits back or charges more hits, so that a hold that
 * appears, vanishes or expires at another time can each deny requests.
 */
function narrowerHold(before: Limit, after: Limit): readonly Narrowing[] {
  const [was, is] = [before.hold, after.hold];
  if (was === undefined && is === undefined) return [];
  if (was === undefined) return [{ code: holdsFirstCall(is) ? 'use_is_charged' : 'hits_are_held' }];
  if (is === undefined) return holdsFirstCall(was) ? [{ code: 'hits_are_final' }] : [];
  const found: Narrowing[] = largerEstimate(was, is);
  if (is.expiresAfterMillis < was.expiresAfterMillis) found.push({ code: 'settled_until_earlier' });
  if (is.expiresAfterMillis > was.expiresAfterMillis) found.push({ code: 'settled_until_later' });
  if (was.pair !== is.pair)
    found.push({ code: is.pair === 'oldest' ? 'starts_without_hits' : 'starts_with_hits' });
  if (was.unknown === 'free' && is.unknown === 'keep') found.push({ code: 'unknown_use_is_kept' });
  if ((after.rate?.maxDebt ?? 0) > (before.rate?.maxDebt ?? 0)) found.push({ code: 'deeper_debt' });
  return found;
}
