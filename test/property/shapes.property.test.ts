import { beforeAll, describe, test } from '@jest/globals';
import fc from 'fast-check';
import { windowRate } from '../../src/limiter/fixed-window.js';
import { isCharge, type Rate } from '../../src/limiter/rate.js';
import { tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../src/limiter/window-unit.js';
import { shapePart } from '../../src/policy/names/bucket-key.js';
import { expectAtMost, expectEqual } from '../support/assert/quick-expect.js';
import { runs } from '../support/assert/runs.js';
import { takeItem } from '../support/limiter/take-items.js';
import { memoryBench, RedisBench, type TestBench, takeFrom } from '../support/limiter/test-stores.js';

/*
 * While a changed policy reaches one server after another, servers use different rates for the same rule. Whatever the
 * two rates are, the servers together allow at most the sum of both limits. The names of the buckets are those that
 * policies create.
 */

const LIMIT = 10;
const MORE = 13;

/**
 * One rule with every kind of rate, with and without debt, each with two limits. Token buckets refill too slowly to
 * matter here. They differ in capacity, in the time to fill, and in the fraction of a microsecond.
 */
const SHAPES: readonly (readonly [string, Rate])[] = [LIMIT, MORE].flatMap((limit) => [
  [`token bucket of ${limit}`, tokenBucketRate(limit, 1, UNIT_MICROS.day)] as const,
  [`token bucket of ${limit} with debt`, tokenBucketRate(limit, 1, UNIT_MICROS.day, 5)] as const,
  [`token bucket of ${limit} that fills in a week`, tokenBucketRate(limit, limit, UNIT_MICROS.week)] as const,
  [`${limit} a minute`, windowRate('minute', limit)] as const,
  [`${limit} a minute with debt`, windowRate('minute', limit, { maxDebt: 5 })] as const,
  [`${limit} a minute in a list`, windowRate('minute', limit, { countsOnlyAllowed: true })] as const,
  [`${limit} in five minutes`, windowRate('minute', limit, { multiplier: 5 })] as const,
  [`${limit} an hour`, windowRate('hour', limit)] as const,
  [`${limit} a day`, windowRate('day', limit)] as const,
  [`${limit} a day of Tokyo`, windowRate('day', limit, { timeZone: 'Asia/Tokyo' })] as const,
  [`${limit} a day of UTC with debt`, windowRate('day', limit, { timeZone: 'UTC', maxDebt: 5 })] as const,
  [`${limit} a week of Berlin`, windowRate('week', limit, { timeZone: 'Europe/Berlin' })] as const,
  [`${limit} a month of Berlin`, windowRate('month', limit, { timeZone: 'Europe/Berlin' })] as const,
]);

const PAIRS = SHAPES.flatMap(([one, first]) =>
  SHAPES.map(([other, second]) => ({ name: `${one}, ${other}`, first, second })),
);

/** Returns whether two token buckets take a different time to fill from the maximum debt. */
function differInDepth(first: Rate, second: Rate): boolean {
  return (
    first.kind === 'token_bucket' && second.kind === 'token_bucket' && first.debtWhole !== second.debtWhole
  );
}

function limitOf(rate: Rate): number {
  return rate.reportedLimit;
}

/** Number of buckets so far, because each pair has separate buckets. */
let run = 0;

const step = fc.record({
  second: fc.boolean(),
  hits: fc.oneof({ arbitrary: fc.constant(1), weight: 4 }, fc.integer({ min: 0, max: 30 })),
  refund: fc.oneof({ arbitrary: fc.constant(false), weight: 6 }, fc.constant(true)),
});

describe.each<TestBench>([memoryBench(), new RedisBench('redis-server')])('in $name', (bench) => {
  beforeAll(() => bench.start());

  test('two servers that call in turn allow at most the sum of both limits', async () => {
    const store = await bench.open();
    for (const { name, first, second } of PAIRS) {
      const key = `turns${run++}`;
      let passed = 0;
      for (let call = 0; call < 80; call++) {
        const rate = call % 2 === 0 ? first : second;
        const [outcome] = await takeFrom(store, takeItem(key + shapePart(rate), rate));
        if (!outcome!.overLimit) passed++;
      }
      const limits = [limitOf(first), limitOf(second)];
      const sum = (limits[0] as number) + (limits[1] as number);
      // Two rates with the same part of the name share a bucket, which is read with each limit in turn. Token buckets
      // with different times to fill have different costs per token.
      if (shapePart(first) !== shapePart(second)) expectEqual([name, passed], [name, sum]);
      else {
        const most = differInDepth(first, second) ? sum : Math.max(...limits);
        expectEqual([name, passed <= most && passed >= Math.min(...limits)], [name, true]);
      }
    }
  });

  test('concurrent takes, charges and refunds do not allow more, either', async () => {
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
                const take = takeItem(key + shapePart(rate), rate, { hits, refund });
                const [outcome] = await takeFrom(bySecond ? other : one, take);
                if (refund) returned += hits;
                // Charges are always allowed, because the usage already happened.
                else if (!outcome!.overLimit && !isCharge(rate, hits, refund)) passed += hits;
              }),
            );
          }
          expectAtMost(passed, limitOf(first) + limitOf(second) + returned);
        },
      ),
      runs(300),
    );
  });
});
