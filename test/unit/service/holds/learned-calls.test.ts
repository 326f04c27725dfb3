import { describe, expect, test } from '@jest/globals';
import { type SimulatedCall, simulateCalls } from '../../../support/limiter/llm-callers.js';

/** Tokens in an hour or a minute, and the mean use of a call. */
const BUDGET = 100_000;
const MEAN = 3000;

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);

describe('100 callers with lognormal uses share a budget with learned estimates', () => {
  test.each([
    {
      name: 'a window',
      rate: { unit: 'hour', requests_per_unit: BUDGET },
      period: 3600,
      seconds: 14 * 3600,
      logDeviation: 0.5,
    },
    {
      name: 'a token bucket',
      rate: { token_bucket: { max_tokens: BUDGET, tokens_per_fill: BUDGET, fill_interval: '1m' } },
      period: 60,
      seconds: 40 * 60,
      logDeviation: 0.5,
    },
  ])('$name', ({ rate, period, seconds, logDeviation }) => {
    const simulate = (hold: object): readonly SimulatedCall[] =>
      simulateCalls({
        rateLimit: { ...rate, hold },
        callers: 100,
        logMean: Math.log(MEAN) - logDeviation ** 2 / 2,
        logDeviation,
        callSeconds: 5,
        retrySeconds: period / 20,
        seconds,
      });
    const learned = simulate({ learned: { quantile: 0.9, start: 4000, max: 32_000 } });
    const foresight = simulate({ from: 'first_call' });

    const ends = learned.map(({ endedAt }) => endedAt).sort((one, other) => one - other);
    const from = Math.ceil((ends[199] as number) / period) * period;
    const later = (calls: readonly SimulatedCall[]): readonly SimulatedCall[] =>
      calls.filter(({ startedAt }) => startedAt >= from);
    const [calls, possible] = [later(learned), later(foresight)];
    expect(possible.length).toBeGreaterThan(200);
    expect(calls.length).toBeGreaterThan(0.9 * possible.length);

    // The overshoot of all calls that are in flight when a call starts, as a share of the budget.
    const shares = calls.map(({ overshoot }) => overshoot / BUDGET);
    expect(sumOf(shares) / shares.length).toBeLessThan(0.02);
    // The use of all calls, as a share of what the limit allows.
    const used = sumOf(calls.map((call) => call.used));
    expect(used / (BUDGET * ((seconds - from) / period + 1))).toBeLessThan(1.02);
  });
});
