import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import type { TakeItem } from '../../src/limiter/bucket-store.js';
import { type Rate, tokenBucketRate, UNIT_MICROS, windowRate } from '../../src/limiter/rate.js';
import { MemoryStore } from '../../src/storage/memory/memory-store.js';
import { AWKWARD_RATES, arbitraryHits, arbitraryRate, arbitrarySpan } from '../support/arbitrary-takes.js';
import { takeItem } from '../support/take-items.js';
import { RedisBench, takeFrom } from '../support/test-stores.js';

// Starting a Redis may take its time on a busy machine.
jest.setTimeout(60_000);

const TOKEN_KEYS = ['a', 'b', 'c'];
const WINDOW_KEYS = ['w', 'x'];
/** Sequences so far: each has keys of its own. */
let run = 0;

/** Items over few keys, so that they meet; each key keeps its kind, its limit may change from request to request. */
function arbitraryItem(): fc.Arbitrary<TakeItem> {
  const options = { refund: fc.boolean(), enforcement: fc.constantFrom('enforce', 'observe', 'quota') };
  const few = fc.oneof(fc.constantFrom(...AWKWARD_RATES, tokenBucketRate(5, 1, 1_000_000)), arbitraryRate());
  const tokens = few.chain((rate) =>
    fc
      .record({ key: fc.constantFrom(...TOKEN_KEYS), hits: arbitraryHits(rate), ...options })
      .map(({ key, ...rest }) => takeItem(key, rate, rest as Partial<TakeItem>)),
  );
  const windows = fc
    .record({
      key: fc.constantFrom(...WINDOW_KEYS),
      unit: fc.constantFrom('second' as const, 'minute' as const, 'week' as const),
      limit: fc.constantFrom(0, 1, 7, 0xffff_ffff),
      hits: fc.oneof(fc.integer({ min: 0, max: 9 }), fc.constant(Number.MAX_SAFE_INTEGER)),
      ...options,
    })
    .map(({ key, unit, limit, ...rest }) =>
      takeItem(key, windowRate(unit, limit) as Rate, rest as Partial<TakeItem>),
    );
  return fc.oneof({ arbitrary: tokens, weight: 3 }, { arbitrary: windows, weight: 1 });
}

/** Requests of one item that ask the same, so that they travel together, among others on the same few buckets. */
const crowd = fc
  .array(
    fc.record({
      items: fc.oneof(
        { arbitrary: fc.array(arbitraryItem(), { minLength: 1, maxLength: 1 }), weight: 5 },
        { arbitrary: fc.array(arbitraryItem(), { minLength: 2, maxLength: 3 }), weight: 1 },
      ),
      times: fc.integer({ min: 1, max: 7 }),
      again: fc.boolean(),
    }),
    { minLength: 1, maxLength: 6 },
  )
  .map((groups) => {
    const first = groups.flatMap(({ items, times }) => Array.from({ length: times }, () => items));
    return first.concat(groups.flatMap(({ items, again }) => (again ? [items] : [])));
  });

const turn = fc.record({
  wait: fc.oneof(arbitrarySpan(AWKWARD_RATES[1]!), fc.integer({ min: 0, max: UNIT_MICROS.minute })),
  // Requests of one turn travel in one call.
  requests: fc.oneof(
    fc.array(fc.array(arbitraryItem(), { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 4 }),
    crowd,
  ),
});

describe('take.lua', () => {
  const bench = new RedisBench('redis-server');
  beforeAll(() => bench.start());
  afterAll(() => bench.stop());

  test.each([true, false])(
    'decides as memory does (windows count denied hits: %s)',
    async (countDeniedHits) => {
      const redis = await bench.open({ countDeniedHits });
      await fc.assert(
        fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 12 }), async (turns) => {
          run++;
          const memory = new MemoryStore({ clock: bench.clock, countDeniedHits });
          for (const { wait, requests } of turns) {
            bench.clock.advance(wait);
            const named = requests.map((items) =>
              items.map((item) => ({ ...item, key: `${run}${item.key}` })),
            );
            const expected = named.map((items) => memory.take(items));
            expect(await Promise.all(named.map((items) => takeFrom(redis, ...items)))).toEqual(expected);
          }
        }),
        { numRuns: 120 },
      );
    },
    60_000,
  );

  test('admits at most a bucketful more for each step of the clock', async () => {
    const store = await bench.open();
    const step = fc.record({
      wait: fc.integer({ min: 0, max: 400_000 }),
      jump: fc.option(fc.integer({ min: -20_000_000, max: 20_000_000 }), { freq: 10 }),
      hits: fc.integer({ min: 0, max: 12 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
        const rate = tokenBucketRate(10, 3, UNIT_MICROS.second);
        const key = `step${run++}`;
        let elapsed = 0;
        let jumps = 0;
        let passed = 0;
        for (const { wait, jump, hits } of steps) {
          bench.clock.advance(wait);
          elapsed += wait;
          if (jump !== null) {
            bench.clock.stepWall(jump);
            jumps++;
          }
          const [outcome] = await takeFrom(store, takeItem(key, rate, { hits }));
          if (!outcome!.limited) passed += hits;
        }
        expect(passed).toBeLessThanOrEqual((1 + jumps) * rate.maxTokens + (elapsed * 3) / UNIT_MICROS.second);
        // Nor does a step take more than a bucketful: a time to fill later it is full again.
        bench.clock.advance(rate.fillWhole + 1 + UNIT_MICROS.second);
        expect((await takeFrom(store, takeItem(key, rate, { hits: 0 })))[0]!.remaining).toBe(rate.maxTokens);
      }),
      { numRuns: 25 },
    );
  });

  test('takes from all buckets of a request or from none, with two stores at once', async () => {
    const stores = [await bench.open(), await bench.open()];
    const rate = tokenBucketRate(20, 3, UNIT_MICROS.second);
    const request = fc.array(
      fc.record({ key: fc.constantFrom(...TOKEN_KEYS), hits: fc.integer({ min: 1, max: 4 }) }),
      {
        minLength: 1,
        maxLength: 4,
      },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 10, maxLength: 40 }), async (requests) => {
        run++;
        const named = requests.map((items) =>
          items.map(({ key, hits }) => takeItem(`all${run}${key}`, rate, { hits })),
        );
        const results = await Promise.all(named.map((items, i) => takeFrom(stores[i % 2]!, ...items)));
        const left = new Map(TOKEN_KEYS.map((key) => [`all${run}${key}`, rate.maxTokens]));
        results.forEach((outcomes, i) => {
          if (outcomes.some(({ limited }) => limited)) return;
          for (const { key, hits } of named[i]!) left.set(key, left.get(key)! - hits);
        });
        for (const [key, remaining] of left) {
          const [look] = await takeFrom(stores[0]!, takeItem(key, rate, { hits: 0 }));
          expect(look!.remaining).toBe(remaining);
        }
      }),
      { numRuns: 15 },
    );
  });
});
