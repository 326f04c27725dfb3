import { describe, expect, test } from '@jest/globals';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import { LocalRates, localRate } from '../../../src/limiter/local-rate.js';
import { MAX_FILL_MICROS } from '../../../src/limiter/rate-algorithm.js';
import { type TokenBucketRate, tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { HUNDRED, takeItem } from '../../support/limiter/take-items.js';

const HOUR = 3_600_000_000;

describe('the share of a token bucket that a process enforces', () => {
  test.each([
    ['a quarter', HUNDRED, 0.25, 1, { maxTokens: 25, refillNumerator: 400_000, refillDenominator: 1 }],
    [
      'the whole, between two workers',
      HUNDRED,
      1,
      2,
      { maxTokens: 50, refillNumerator: 200_000, refillDenominator: 1 },
    ],
    [
      'a third that is none',
      tokenBucketRate(10, 3, 1_000_000),
      0.3,
      1,
      { maxTokens: 3, refillNumerator: 10_000_000, refillDenominator: 9 },
    ],
    [
      'at least a token',
      tokenBucketRate(1, 1, HOUR),
      0.25,
      2,
      { maxTokens: 1, refillNumerator: 8 * HOUR, refillDenominator: 1 },
    ],
    ['a debt, too', tokenBucketRate(8, 8, HOUR, 4), 0.5, 1, { maxTokens: 4, maxDebt: 2, minChargeHits: 2 }],
    ['at least a token of debt', tokenBucketRate(8, 8, HOUR, 1), 0.5, 1, { maxTokens: 4, maxDebt: 1 }],
  ] as const)('%s', (_, rate, share, workers, expected) => {
    expect(localRate(rate, share, workers)).toMatchObject(expected);
  });

  test('a share of 1 is the rate itself', () => {
    expect(localRate(HUNDRED, 1, 1)).toBe(HUNDRED);
  });

  test('stays exact for any small share', () => {
    const century = tokenBucketRate(0xffff_ffff, 0xffff_fffb, 1_000);
    const slow = tokenBucketRate(1, 1, MAX_FILL_MICROS);
    for (const rate of [century, slow]) {
      const part = localRate(rate, 1e-6, 256) as TokenBucketRate;
      expect([part.refillNumerator, part.refillDenominator, part.fillWhole].every(Number.isSafeInteger)).toBe(
        true,
      );
      expect(2 * part.refillDenominator).toBeLessThanOrEqual(Number.MAX_SAFE_INTEGER);
      expect(part.debtWhole).toBeLessThanOrEqual(MAX_FILL_MICROS);
    }
  });

  test('allows exactly the tokens that its share refills', () => {
    const clock = new FakeClock();
    const store = new MemoryStore({ ...MEMORY, clock });
    const part = localRate(tokenBucketRate(10, 3, 1_000_000), 0.3, 1);
    const take = (): boolean | undefined => store.take([takeItem('k', part)])[0]?.overLimit;
    expect([take(), take(), take(), take()]).toEqual([false, false, false, true]);
    // The share refills 0.9 tokens a second.
    clock.advance(1_111_111);
    expect(take()).toBe(true);
    clock.advance(1);
    expect(take()).toBe(false);
  });
});

describe('the share of a window', () => {
  test.each([
    [100, 0.25, 1, 25],
    [100, 1, 3, 33],
    [1, 0.1, 2, 1],
    // A limit of 0 stays 0.
    [0, 0.5, 1, 0],
  ])('%i hits, share %d of %i workers: %i', (requests, share, workers, expected) => {
    expect(localRate(windowRate('hour', requests), share, workers)).toMatchObject({
      requestsPerUnit: expected,
      unit: 'hour',
    });
  });

  test('has the length, time zone and debt of the window', () => {
    const days = windowRate('day', 10, { timeZone: 'Europe/Berlin', maxDebt: 4, countsOnlyAllowed: true });
    const part = localRate(days, 0.5, 1);
    expect(part).toMatchObject({ requestsPerUnit: 5, maxDebt: 2, countsOnlyAllowed: true });
    expect(part.kind === 'window' && part.calendar?.timeZone).toBe('Europe/Berlin');
    expect(localRate(windowRate('minute', 10, { multiplier: 5 }), 0.5, 1)).toMatchObject({
      lengthMicros: 300_000_000,
    });
  });
});

test('local rates are created once', () => {
  const rates = new LocalRates(2);
  expect(rates.of(HUNDRED, 0.5)).toBe(rates.of(HUNDRED, 0.5));
  expect(rates.of(HUNDRED, 0.5)).toMatchObject({ maxTokens: 25 });
  expect(rates.of(HUNDRED, 1)).toMatchObject({ maxTokens: 50 });
});
