import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { shapePart } from '../../src/config/bucket-key.js';
import { isCharge, type Rate, tokenBucketRate, UNIT_MICROS, windowRate } from '../../src/limiter/rate.js';
import { takeItem } from '../support/take-items.js';
import { memoryBench, RedisBench, type TestBench, takeFrom } from '../support/test-stores.js';

/*
 * While a changed policy reaches one server after the other, they disagree about a rule. Whatever they say of its shape, together they admit at most what
 * both limits hold. The names of the buckets are those that policies give.
 */

// Starting a Redis may take its time on a busy machine.
jest.setTimeout(60_000);

const LIMIT = 10;
const MORE = 13;

/** One rule in every shape, with and without debt; of each, one with another limit. Token buckets refill too slowly to matter here. */
const SHAPES: readonly (readonly [string, Rate])[] = [LIMIT, MORE].flatMap((limit) => [
  [`token bucket of ${limit}`, tokenBucketRate(limit, 1, UNIT_MICROS.day)] as const,
  [`token bucket of ${limit} with debt`, tokenBucketRate(limit, 1, UNIT_MICROS.day, 5)] as const,
  [`${limit} a minute`, windowRate('minute', limit)] as const,
  [`${limit} a minute with debt`, windowRate('minute', limit, { maxDebt: 5 })] as const,
  [`${limit} a minute in a list`, windowRate('minute', limit, { allOrNothing: true })] as const,
  [`${limit} in five minutes`, windowRate('minute', limit, { multiplier: 5 })] as const,
  [`${limit} an hour`, windowRate('hour', limit)] as const,
  [`${limit} a day`, windowRate('day', limit)] as const,
  [`${limit} a day of Tokyo`, windowRate('day', limit, { timeZone: 'Asia/Tokyo' })] as const,
  [`${limit} a day of UTC with debt`, windowRate('day', limit, { timeZone: 'UTC', maxDebt: 5 })] as const,
  [`${limit} a week of Berlin`, windowRate('week', limit, { timeZone: 'Europe/Berlin' })] as const,
  [`${limit} a month of Berlin`, windowRate('month', limit, { timeZone: 'Europe/Berlin' })] as const,
]);

/** Without token buckets that differ in their limit: these are one shape, whose state the smaller one clamps to its own. */
const PAIRS = SHAPES.flatMap(([one, first]) =>
  SHAPES.map(([other, second]) => ({ name: `${one}, ${other}`, first, second })),
).filter(
  ({ first, second }) =>
    first.kind === 'window' || second.kind === 'window' || limitOf(first) === limitOf(second),
);

function limitOf(rate: Rate): number {
  return rate.kind === 'window' ? rate.requestsPerUnit : rate.maxTokens;
}

/** Buckets so far: each pair has names of its own. */
let run = 0;

const step = fc.record({
  second: fc.boolean(),
  hits: fc.oneof({ arbitrary: fc.constant(1), weight: 4 }, fc.integer({ min: 0, max: 30 })),
  refund: fc.oneof({ arbitrary: fc.constant(false), weight: 6 }, fc.constant(true)),
});

describe.each<TestBench>([memoryBench(), new RedisBench('redis-server')])('in $name', (bench) => {
  beforeAll(() => bench.start());
  afterAll(() => bench.stop());

  test('two servers that call by turns admit at most the sum of both limits', async () => {
    const store = await bench.open();
    for (const { name, first, second } of PAIRS) {
      const key = `turns${run++}`;
      let passed = 0;
      for (let call = 0; call < 80; call++) {
        const rate = call % 2 === 0 ? first : second;
        const [outcome] = await takeFrom(store, takeItem(key + shapePart(rate), rate));
        if (!outcome!.limited) passed++;
      }
      const limits = [limitOf(first), limitOf(second)];
      // Where the shapes are one, so is the bucket: it is read under each limit.
      if (shapePart(first) === shapePart(second)) {
        expect([name, passed <= Math.max(...limits) && passed >= Math.min(...limits)]).toEqual([name, true]);
      } else {
        expect([name, passed]).toEqual([name, (limits[0] as number) + (limits[1] as number)]);
      }
    }
  });

  test('nor do more pass when many ask at once, charge and give back', async () => {
    const stores = [await bench.open(), await bench.open()] as const;
    const [one, other] = bench.name === 'memory' ? [stores[0], stores[0]] : stores;
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...PAIRS),
        fc.array(fc.array(step, { minLength: 1, maxLength: 40 }), { minLength: 1, maxLength: 4 }),
        async ({ first, second }, turns) => {
          const key = `once${run++}`;
          let passed = 0;
          let returned = 0;
          for (const steps of turns) {
            await Promise.all(
              steps.map(async ({ second: bySecond, hits, refund }) => {
                const rate = bySecond ? second : first;
                const item = takeItem(key + shapePart(rate), rate, { hits, refund });
                const [outcome] = await takeFrom(bySecond ? other : one, item);
                if (refund) returned += hits;
                // Charges are of what happened already, and always pass.
                else if (!outcome!.limited && !isCharge(rate, hits, refund)) passed += hits;
              }),
            );
          }
          expect(passed).toBeLessThanOrEqual(limitOf(first) + limitOf(second) + returned);
        },
      ),
      { numRuns: 300 },
    );
  });
});
