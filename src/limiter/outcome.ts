import type { TakeItem, TakeOutcome } from './bucket-store.js';
import { costCarry, costWhole, type TokenBucketRate, type WindowRate } from './rate.js';

/**
 * Turns what was decided about `item` into what is reported: `whole` and `part` as in Steps of decide.ts, `nowMicros` the
 * clock it was decided on. `cached`: see TakeOutcome.
 */
export function outcome(
  item: TakeItem,
  limited: boolean,
  whole: number,
  part: number,
  nowMicros: number,
  cached = false,
): TakeOutcome {
  const rate = item.rate;
  return rate.kind === 'window'
    ? windowOutcome(rate, limited, whole, part, nowMicros, cached)
    : tokenOutcome(rate, item.hits, limited, whole, part, nowMicros, cached);
}

function windowOutcome(
  rate: WindowRate,
  limited: boolean,
  start: number,
  count: number,
  nowMicros: number,
  cached: boolean,
): TakeOutcome {
  return {
    limited,
    remaining: limited ? 0 : Math.max(0, rate.requestsPerUnit - count),
    waitMicros: Math.max(0, start + rate.lengthMicros - nowMicros),
    used: count,
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
  cached: boolean,
): TakeOutcome {
  // What is there, as the time it took to fill: fill - (T - now).
  let roomWhole = rate.fillWhole - (fullAt - nowMicros);
  let roomCarry = rate.fillCarry - carry;
  if (roomCarry < 0) {
    roomCarry += rate.q;
    roomWhole -= 1;
  }
  const remaining = wholeTokens(rate, roomWhole, roomCarry);
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
    cached,
  };
}

/** floor((whole + carry / q) * q / p), exact. */
function wholeTokens(rate: TokenBucketRate, whole: number, carry: number): number {
  const product = whole * rate.q + carry;
  if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / rate.p);
  return Number((BigInt(whole) * BigInt(rate.q) + BigInt(carry)) / BigInt(rate.p));
}
