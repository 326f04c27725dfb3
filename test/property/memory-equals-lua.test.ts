import { beforeAll, describe, jest, test } from '@jest/globals';
import fc from 'fast-check';
import type { Take } from '../../src/limiter/bucket-store.js';
import { type WindowRate, windowRate } from '../../src/limiter/fixed-window.js';
import { settlingRate } from '../../src/limiter/local-rate.js';
import { refillWhole, type TokenBucketRate, tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../src/limiter/window-unit.js';
import { MemoryStore } from '../../src/storage/memory/memory-store.js';
import { MAX_ORDINARY_ITEMS, MAX_TAKES_PER_CALL } from '../../src/storage/redis/redis-store.js';
import { expectAtMost, expectEqual, expectSame } from '../support/assert/quick-expect.js';
import { runs } from '../support/assert/runs.js';
import { FakeClock } from '../support/clock/fake-clock.js';
import {
  AWKWARD_RATES,
  arbitraryHits,
  arbitraryRate,
  arbitrarySpan,
} from '../support/limiter/arbitrary-takes.js';
import { ClusterBench } from '../support/limiter/cluster-bench.js';
import { MEMORY } from '../support/limiter/store-options.js';
import { takeItem } from '../support/limiter/take-items.js';
import { RedisBench, takeFrom } from '../support/limiter/test-stores.js';

// Starting Redis may be slow on a busy machine.
jest.setTimeout(180_000);

const TOKEN_KEYS = ['a', 'b', 'c'];
const WINDOW_KEYS = ['w', 'x'];
/** The key whose limits all have the same depth. */
const ONE_DEPTH_KEY = 'c';
/** Number of sequences so far, each of which has its own keys. */
let run = 0;

/** Returns the key of a bucket for the current sequence. */
function ofRun(name: string): Pick<Take, 'key' | 'hashTagLength'> {
  const tenant = `run ${run} `;
  return { key: tenant + name, hashTagLength: tenant.length };
}

/** Small buckets, so that sequences of hits reach all states of debt. */
const OWING_BUCKETS: readonly TokenBucketRate[] = [
  tokenBucketRate(5, 1, UNIT_MICROS.second, 5),
  tokenBucketRate(10, 3, UNIT_MICROS.second, 2),
  tokenBucketRate(3, 7, UNIT_MICROS.minute, 100),
  // A class that leaves 4 of 10 tokens to others, and takes no debt itself.
  tokenBucketRate(6, 3, UNIT_MICROS.second, 4, Number.POSITIVE_INFINITY),
  tokenBucketRate(0xffff_ffff, 0xffff_fffb, 1_000, 0xffff_ffff),
];
const TIME_ZONES = ['UTC', 'Europe/Berlin', 'America/Havana', 'Australia/Lord_Howe'];

/** The windows of a key. The limit, the debt and the length may change between requests. */
function arbitraryWindow(): fc.Arbitrary<WindowRate> {
  const limit = fc.constantFrom(0, 1, 7, 0xffff_ffff);
  const debt = fc.constantFrom(0, 0, 1, 5, 0xffff_ffff);
  const plain = fc.tuple(
    fc.constantFrom('second' as const, 'minute' as const, 'week' as const),
    limit,
    debt,
    fc.constantFrom(1, 1, 5),
    fc.boolean(),
  );
  const calendar = fc.tuple(
    fc.constantFrom('day' as const, 'week' as const, 'month' as const, 'year' as const),
    limit,
    debt,
    fc.constantFrom(...TIME_ZONES),
    fc.boolean(),
  );
  const owed = (most: number, wanted: number): number => Math.min(most, wanted);
  return fc.oneof(
    plain.map(([unit, most, wanted, multiplier, countsOnlyAllowed]) =>
      windowRate(unit, most, {
        multiplier,
        maxDebt: owed(most, wanted),
        countsOnlyAllowed,
      }),
    ),
    calendar.map(([unit, most, wanted, timeZone, countsOnlyAllowed]) =>
      windowRate(unit, most, { timeZone, maxDebt: owed(most, wanted), countsOnlyAllowed }),
    ),
  );
}

/** Rates that fill a bucket in a second, with different fractions of a microsecond. Several of them use one bucket. */
const ONE_SECOND_RATES: readonly TokenBucketRate[] = [1, 3, 7, 10, 300, 299_993].map((tokens) =>
  tokenBucketRate(tokens, tokens, UNIT_MICROS.second),
);

/**
 * Returns the bucket of an item. Limits of any depth share a bucket, so that it often has the state of a larger limit,
 * unless its key is {@link ONE_DEPTH_KEY}.
 */
function bucketOf({ key, rate }: Take): string {
  if (rate.kind !== 'token_bucket' || !key.startsWith(ONE_DEPTH_KEY)) return key;
  // A fraction of a microsecond is part of the depth.
  const part = rate.debtCarry > 0 ? `.${rate.debtCarry}/${rate.refillDenominator}` : '';
  return `${key}.${rate.debtWhole}${part}`;
}

const options = {
  /** Whether any number of hits is a charge, as for settlements. */
  charging: fc.integer({ min: 0, max: 9 }).map((chance) => chance === 0),
  refund: fc.boolean(),
  enforcement: fc.constantFrom('enforce' as const, 'observe' as const, 'quota' as const, 'spill' as const),
};

function arbitraryWindowItem(): fc.Arbitrary<Take> {
  return fc
    .record({
      key: fc.constantFrom(...WINDOW_KEYS),
      rate: arbitraryWindow(),
      hits: fc.oneof(fc.integer({ min: 0, max: 9 }), fc.constant(Number.MAX_SAFE_INTEGER)),
      /** For a refund of one window only: 0 for the current window, 1 for another one. */
      isOther: fc.option(fc.constantFrom(0, 1), { nil: undefined }),
      ...options,
    })
    .map(({ key, rate, charging, isOther, ...rest }) => {
      const take = takeItem(key, charging ? settlingRate(rate) : rate, rest);
      return rest.refund && isOther !== undefined ? { ...take, undoAtMicros: isOther } : take;
    });
}

/** Adds the current time to the mark of a refund that undoes a take; see {@link arbitraryItem}. */
function withCurrentMark(take: Take, clock: FakeClock): Take {
  const { rate, undoAtMicros } = take;
  if (undoAtMicros === undefined) return take;
  const now = clock.wallMicros();
  return { ...take, undoAtMicros: (rate.kind === 'window' ? rate.startOf(now) : now) + undoAtMicros };
}

/**
 * Items with few keys, so that they often share a bucket. Each key has one kind of limit, but the limit may change
 * between requests.
 */
function arbitraryItem(): fc.Arbitrary<Take> {
  const rates = fc.oneof(
    fc.constantFrom(...AWKWARD_RATES, ...OWING_BUCKETS, tokenBucketRate(5, 1, 1_000_000)),
    fc.constantFrom(...ONE_SECOND_RATES),
    arbitraryRate(),
  );
  const tokens = rates.chain((rate) =>
    fc
      .record({
        key: fc.constantFrom(...TOKEN_KEYS),
        hits: arbitraryHits(rate),
        /** For a refund that undoes a take: the offset of its mark, in thousandths of the cost of the hits. */
        ahead: fc.option(fc.integer({ min: -1_200, max: 200 }), { nil: undefined }),
        ...options,
      })
      .map(({ key, charging, ahead, ...rest }) => {
        const take = takeItem(key, charging ? settlingRate(rate) : rate, rest);
        if (!rest.refund || ahead === undefined) return take;
        return {
          ...take,
          undoAtMicros: Math.floor((refillWhole(rate, rate.chargedHits(rest.hits)) * ahead) / 1_000),
        };
      }),
  );
  return fc.oneof({ arbitrary: tokens, weight: 3 }, { arbitrary: arbitraryWindowItem(), weight: 2 });
}

/** Equal requests, so that they share a step of a call, together with other requests on the same few buckets. */
const equalRequests = fc
  .array(
    fc.record({
      items: fc.oneof(
        { arbitrary: fc.array(arbitraryItem(), { minLength: 1, maxLength: 1 }), weight: 5 },
        { arbitrary: fc.array(arbitraryItem(), { minLength: 2, maxLength: 3 }), weight: 3 },
      ),
      times: fc.oneof(fc.integer({ min: 1, max: 7 }), fc.constant(60)),
      again: fc.integer({ min: 0, max: 2 }),
    }),
    { minLength: 1, maxLength: 6 },
  )
  .map((groups) => {
    const first = groups.flatMap(({ items, times }) => Array.from({ length: times }, () => items));
    const twice = groups.flatMap(({ items, again }) => (again > 0 ? [items, items] : []));
    const byTurns = groups.concat(groups).flatMap(({ items, again }) => (again > 1 ? [items] : []));
    // A call contains at most 1,000 takes.
    return first.concat(byTurns, twice).slice(0, 300);
  });

const turn = fc.record({
  wait: fc.oneof(
    arbitrarySpan(AWKWARD_RATES[1]!),
    fc.integer({ min: 0, max: UNIT_MICROS.minute }),
    fc.integer({ min: 0, max: 10 * UNIT_MICROS.day }),
  ),
  // Requests of one turn share a call.
  requests: fc.oneof(
    fc.array(fc.array(arbitraryItem(), { minLength: 1, maxLength: MAX_ORDINARY_ITEMS }), {
      minLength: 1,
      maxLength: 4,
    }),
    // Large requests have separate calls.
    fc.array(arbitraryItem(), { minLength: MAX_ORDINARY_ITEMS + 1, maxLength: 24 }).map((takes) => [takes]),
    equalRequests,
  ),
});

/** In a cluster, all buckets of a sequence belong to one tenant, so that one call decides them. */
describe.each([new RedisBench('redis-server'), new ClusterBench('redis-server')])(
  'take.lua in $name',
  (bench) => {
    // All servers run the same script, so the slower ones run fewer cases.
    const share = bench instanceof RedisBench ? 1 : 1 / 3;
    beforeAll(() => bench.start());

    test.each([true, false])(
      'decides like memory (windows count denied hits: %s)',
      async (countDeniedHits) => {
        // The clock must not advance within a turn: a call that is repeated with other calendar windows would be
        // decided after the next call.
        const clock = (): number => bench.clock.wallMicros();
        const redis = await bench.openWith({ clock, countDeniedHits, keysPerCall: MAX_TAKES_PER_CALL });
        await fc.assert(
          fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 12 }), async (turns) => {
            run++;
            const memory = new MemoryStore({ ...MEMORY, clock: bench.clock, countDeniedHits });
            for (const { wait, requests } of turns) {
              bench.clock.advance(wait);
              const asked = requests.map((takes) =>
                takes.map((take) => ({ ...withCurrentMark(take, bench.clock), ...ofRun(bucketOf(take)) })),
              );
              const expected = asked.map((items) => memory.take(items));
              expectEqual(await Promise.all(asked.map((items) => takeFrom(redis, ...items))), expected);
            }
          }),
          runs(Math.ceil(120 * share)),
        );
      },
      180_000,
    );

    test.each([true, false])(
      'decides windows like memory, even if the clock steps (windows count denied hits: %s)',
      async (countDeniedHits) => {
        const step = fc.record({
          // Excludes steps back of up to a second, because Redis waits for the clock.
          jump: fc.oneof(
            fc.integer({ min: 0, max: 2 * UNIT_MICROS.second }),
            fc.integer({ min: -UNIT_MICROS.minute, max: -2 * UNIT_MICROS.second }),
            fc.integer({ min: -400, max: 400 }).map((days) => days * UNIT_MICROS.day),
          ),
          requests: fc.array(fc.array(arbitraryWindowItem(), { minLength: 1, maxLength: 3 }), {
            minLength: 1,
            maxLength: 4,
          }),
        });
        await fc.assert(
          fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 15 }), async (steps) => {
            run++;
            // The clock starts again for each sequence, because many sequences would reach times before 1970. The new
            // store has seen no later time.
            bench.clock.wall = new FakeClock().wall;
            const redis = await bench.open({ countDeniedHits });
            const memory = new MemoryStore({ ...MEMORY, clock: bench.clock, countDeniedHits });
            for (const { jump, requests } of steps) {
              bench.clock.stepWall(jump);
              const asked = requests.map((takes) =>
                takes.map((take) => ({ ...withCurrentMark(take, bench.clock), ...ofRun(take.key) })),
              );
              const expected = asked.map((items) => memory.take(items));
              expectEqual(await Promise.all(asked.map((items) => takeFrom(redis, ...items))), expected);
            }
          }),
          runs(Math.ceil(150 * share)),
        );
      },
      180_000,
    );

    test('allows at most one more full bucket for each step of the clock', async () => {
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
            if (!outcome!.overLimit) passed += hits;
          }
          expectAtMost(passed, (1 + jumps) * rate.maxTokens + (elapsed * 3) / UNIT_MICROS.second);
          // A step costs at most one full bucket: after the time to fill, the bucket is full again.
          bench.clock.advance(rate.fillWhole + 1 + UNIT_MICROS.second);
          expectSame((await takeFrom(store, takeItem(key, rate, { hits: 0 })))[0]!.remaining, rate.maxTokens);
        }),
        runs(Math.ceil(25 * share)),
      );
    });

    test('takes from all buckets of a request or from none, with two concurrent stores', async () => {
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
          const takesOfAll = requests.map((items) =>
            items.map(({ key, hits }) => ({ ...takeItem(key, rate, { hits }), ...ofRun(key) })),
          );
          const results = await Promise.all(takesOfAll.map((items, i) => takeFrom(stores[i % 2]!, ...items)));
          const left = new Map(TOKEN_KEYS.map((key) => [ofRun(key).key, rate.maxTokens]));
          results.forEach((outcomes, i) => {
            if (outcomes.some(({ overLimit }) => overLimit)) return;
            for (const { key, hits } of takesOfAll[i]!) left.set(key, left.get(key)! - hits);
          });
          for (const [key, remaining] of left) {
            const item = { ...takeItem(key, rate, { hits: 0 }), hashTagLength: ofRun('').hashTagLength };
            expectSame((await takeFrom(stores[0]!, item))[0]!.remaining, remaining);
          }
        }),
        runs(Math.ceil(15 * share)),
      );
    });
  },
);
