import { beforeAll, describe, test } from '@jest/globals';
import fc from 'fast-check';
import type { Take } from '../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../../src/limiter/window-unit.js';
import { redisKey } from '../../../src/storage/redis/redis-key.js';
import { expectEqual } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { AWKWARD_RATES, arbitraryHits } from '../../support/limiter/arbitrary-takes.js';
import { HUNDRED, takeItem } from '../../support/limiter/take-items.js';
import { RedisBench, takeFrom } from '../../support/limiter/test-stores.js';

/*
 * take.lua has a faster path for a call with one take, or with equal takes. Both paths must have the same result for
 * any stored value.
 */

const { second, minute, hour } = UNIT_MICROS;
const MAX = Number.MAX_SAFE_INTEGER;

const tokens = fc
  .constantFrom(
    ...AWKWARD_RATES,
    HUNDRED,
    tokenBucketRate(1, 1, second),
    tokenBucketRate(5, 1, hour),
    tokenBucketRate(5, 1, second, 5),
  )
  .chain((rate) => arbitraryHits(rate).map((hits) => takeItem('', rate, { hits })));
const windows = fc
  .record({
    rate: fc.constantFrom(
      windowRate('second', 3),
      windowRate('minute', 5),
      windowRate('minute', 5, { countsOnlyAllowed: true }),
      windowRate('minute', 5, { maxDebt: 5 }),
      windowRate('hour', 0xffff_ffff),
      windowRate('day', 4, { timeZone: 'Europe/Berlin' }),
    ),
    hits: fc.oneof({ arbitrary: fc.integer({ min: 0, max: 7 }), weight: 9 }, fc.constant(MAX)),
  })
  .map(({ rate, hits }) => takeItem('', rate, { hits }));

/** A value that was stored at about the time `now`. */
type Stored = (now: number) => string;
const near = fc.integer({ min: -10 * second, max: 10 * second });
const few = fc.integer({ min: 0, max: 8 });
const stored: fc.Arbitrary<Stored> = fc.oneof(
  fc.tuple(near, few, few).map(
    ([micros, carry, q]): Stored =>
      (now) =>
        `t1:${now + micros}:${carry}:${q}`,
  ),
  fc.tuple(near, near, few).map(
    ([micros, later, q]): Stored =>
      (now) =>
        `l1:${now + micros}:0:${q}:${now + micros + later}:${5 * second}`,
  ),
  fc.tuple(near, near, few, few).map(
    ([micros, over, carry, q]): Stored =>
      (now) =>
        `o1:${now + micros}:${Math.abs(over)}:${carry}:${q}`,
  ),
  fc
    .tuple(
      fc.constantFrom('w', 'd', 'g'),
      fc.integer({ min: -1, max: 1 }),
      fc.oneof(few, fc.constantFrom(MAX, `${MAX + 1}0`)),
      fc.constantFrom(0, second, minute, hour),
    )
    .map(
      ([form, windows, count, length]): Stored =>
        (now) =>
          `${form}1:${now - (now % (length || 1)) + windows * length}:${count}:${length}`,
    ),
  fc.constantFrom('', 'x', 't1:', `t1:${MAX}0:0:1`, `t1:${MAX}:0:1`, `w1:${MAX}:1:${minute}`, 't2:1:0:1').map(
    (text): Stored =>
      () =>
        text,
  ),
);
const step = fc.record({
  wait: fc.oneof(
    { arbitrary: fc.constant(0), weight: 2 },
    fc.integer({ min: 0, max: 500_000 }),
    fc.integer({ min: 0, max: 2 * minute }),
  ),
  jump: fc.option(fc.integer({ min: -3 * second, max: 3 * second }), { freq: 10, nil: 0 }),
  before: fc.option(stored, { freq: 4, nil: undefined }),
  isList: fc.integer({ min: 0, max: 20 }).map((chance) => chance === 0),
  /** Whether the call also contains a peek at the same bucket, or a take from another one. */
  looksAgain: fc.boolean(),
  item: fc.oneof(tokens, windows),
  count: fc.oneof(
    { arbitrary: fc.constant(1), weight: 4 },
    { arbitrary: fc.integer({ min: 2, max: 7 }), weight: 4 },
    // More takes than fit into one call; used about twice in each run.
    fc.constant(300),
  ),
});
const steps = fc.array(step, { minLength: 1, maxLength: 25 });

describe('take.lua', () => {
  const bench = new RedisBench('redis-server');
  let run = 0;
  beforeAll(() => bench.start());

  const contents = (name: string): Promise<string | null> =>
    bench.redis.get(redisKey(takeItem(name, HUNDRED))).catch(() => 'a list');

  test.each([true, false])(
    'has the same results on the fast path and in a group (windows count denied hits: %s)',
    async (countDeniedHits) => {
      await fc.assert(
        fc.asyncProperty(steps, async (all) => {
          const store = await bench.open({ countDeniedHits });
          run++;
          const [alone, beside, other] = [`alone${run}`, `beside${run}`, `other${run}`];
          for (const { wait, jump, before, isList, looksAgain, item, count } of all) {
            bench.clock.advance(wait);
            bench.clock.stepWall(jump);
            if (before !== undefined) {
              const value = before(bench.clock.wallMicros());
              for (const name of [alone, beside]) {
                const key = redisKey(takeItem(name, HUNDRED));
                await bench.redis.del(key);
                if (isList) await bench.redis.rpush(key, value);
                else await bench.redis.set(key, value);
              }
            }
            const named = (key: string): Take => ({ ...item, key, hashTagLength: key.length });
            const takes = (key: string) => Array.from({ length: count }, () => takeFrom(store, named(key)));
            const found = await Promise.all(takes(alone));
            const [expected] = await Promise.all([
              Promise.all(takes(beside)),
              takeFrom(store, looksAgain ? { ...named(beside), hits: 0 } : takeItem(other, HUNDRED)),
            ]);
            expectEqual(found, expected);
            expectEqual(await contents(alone), await contents(beside));
          }
        }),
        runs(150),
      );
    },
  );
});
