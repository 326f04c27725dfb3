import type { TakeItem, TakeOutcome } from './bucket-store.js';
import { costCarry, costWhole, type TokenBucketRate, type WindowRate, windowEnd } from './rate.js';

/**
 * Turns what was decided about `item` into what is reported: `whole`, `part` and `forgiven` as in Steps of decide.ts,
 * `nowMicros` the clock it was decided on. `cached`: see TakeOutcome.
 */
export function outcome(
  item: TakeItem,
  limited: boolean,
  whole: number,
  part: number,
  nowMicros: number,
  forgiven = 0,
  cached = false,
): TakeOutcome {
  const rate = item.rate;
  return rate.kind === 'window'
    ? windowOutcome(rate, limited, whole, part, nowMicros, forgiven, cached)
    : tokenOutcome(rate, item.hits, limited, whole, part, nowMicros, forgiven, cached);
}

function windowOutcome(
  rate: WindowRate,
  limited: boolean,
  start: number,
  count: number,
  nowMicros: number,
  forgiven: number,
  cached: boolean,
): TakeOutcome {
  let end = windowEnd(rate, start);
  // A debt that uses up the next window, too, is paid when that one has ended.
  if (limited && rate.maxDebt > 0 && count >= 2 * rate.requestsPerUnit) end = windowEnd(rate, end);
  return {
    limited,
    remaining: limited ? 0 : Math.max(0, rate.requestsPerUnit - count),
    waitMicros: Math.max(0, end - nowMicros),
    used: count,
    forgiven,
    cached,
  };
}

function tokenOutcome(
  rate: TokenBucketRate,
  hits: number,
  limited: boolean,
  fullAt: number,
  carry: number,
  nowMicros: number,
  forgiven: number,
  cached: boolean,
): TakeOutcome {
  // What is there, as the time it took to fill: fill - (T - now). Negative in debt.
  let roomWhole = rate.fillWhole - (fullAt - nowMicros);
  let roomCarry = rate.fillCarry - carry;
  if (roomCarry < 0) {
    roomCarry += rate.q;
    roomWhole -= 1;
  }
  const remaining = roomWhole < 0 ? 0 : wholeTokens(rate, roomWhole, roomCarry);
  const asked = limited
    ? Math.min(Math.max(hits, 1), rate.maxTokens)
    : Math.min(remaining + 1, rate.maxTokens);
  let waitMicros = costWhole(rate, asked) - roomWhole;
  if (costCarry(rate, asked) > roomCarry) waitMicros += 1;
  return {
    limited,
    remaining,
    waitMicros: Math.max(0, waitMicros),
    used: rate.maxTokens - remaining,
    forgiven,
    cached,
  };
}

/** floor((whole + carry / q) * q / p), exact. */
function wholeTokens(rate: TokenBucketRate, whole: number, carry: number): number {
  const product = whole * rate.q + carry;
  if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / rate.p);
  return Number((BigInt(whole) * BigInt(rate.q) + BigInt(carry)) / BigInt(rate.p));
}
