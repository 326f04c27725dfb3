import { beforeAll, describe, test } from '@jest/globals';
import fc from 'fast-check';
import type { BucketStore, Take, TakeOutcome } from '../../../src/limiter/bucket-store.js';
import { type WindowRate, windowRate } from '../../../src/limiter/fixed-window.js';
import { settlingRate } from '../../../src/limiter/local-rate.js';
import { isCharge, type TimedRate } from '../../../src/limiter/rate.js';
import { type TokenBucketRate, tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../../src/limiter/window-unit.js';
import { expectAtMost, expectEqual, expectSame } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { holdItem, settlementTake } from '../../support/limiter/hold-items.js';
import { takeItem } from '../../support/limiter/take-items.js';
import { memoryBench, RedisBench, type TestBench, takeFrom } from '../../support/limiter/test-stores.js';

/*
 * Two limits are used in turns on one bucket: by two servers while a changed limit reaches one after the other, or by
 * one server that reloads back and forth. Neither limit ever allows more than it would alone, and together they never
 * allow more than the larger one would.
 */

const { second, minute, hour } = UNIT_MICROS;

/** Number of buckets so far. */
let run = 0;

type Pair<Limit> = readonly [Limit, Limit];

/** Two different limits, in any order. */
function pairOf<Limit>(limits: readonly Limit[]): fc.Arbitrary<Pair<Limit>> {
  return fc
    .tuple(fc.constantFrom(...limits), fc.constantFrom(...limits))
    .filter(([one, other]) => one !== other);
}

const step = fc.record({
  /** In thousandths of the time in which the first limit's bucket fills, or of the window. */
  wait: fc.oneof({ arbitrary: fc.constant(0), weight: 4 }, fc.integer({ min: 0, max: 1_300 })),
  hits: fc.oneof(
    { arbitrary: fc.constant(1), weight: 5 },
    fc.integer({ min: 0, max: 14 }),
    fc.constant(Number.MAX_SAFE_INTEGER),
  ),
  /** Whether the second limit is used. */
  second: fc.boolean(),
  kind: fc.constantFrom('take', 'take', 'take', 'charge', 'hold', 'settle', 'refund'),
});
const steps = fc.array(step, { minLength: 5, maxLength: 80 });

/** A take that was allowed, or a refund. */
interface Event {
  readonly micros: number;
  readonly rate: TimedRate;
  /** Hits that were taken, for a hold those that were used in the end; negative for a refund. */
  hits: number;
}

/** A hold that is not settled. */
interface OpenHold {
  readonly item: Take;
  readonly outcome: TakeOutcome;
  readonly event: Event;
}

/** Takes the steps in turns with both limits. Returns what was allowed, with the final use of each hold. */
async function takeInTurns(
  [one, other]: Pair<TimedRate>,
  calls: typeof steps extends fc.Arbitrary<infer Steps> ? Steps : never,
  servers: Pair<BucketStore>,
  bench: TestBench,
  mayRefund: boolean,
): Promise<readonly Event[]> {
  const key = `turns${run++}`;
  const events: Event[] = [];
  // Only one hold at a time: of several, an earlier one that ends early may give back too much.
  let open: OpenHold | undefined;
  const length = one.kind === 'window' ? one.lengthMicros : one.fillWhole;
  for (const { wait, hits, second: isSecond, kind } of calls) {
    bench.clock.advance(Math.floor((wait * length) / 1_000));
    const micros = bench.clock.wallMicros();
    const [rate, store] = isSecond ? [other, servers[1]] : [one, servers[0]];
    if (kind === 'refund') {
      if (!mayRefund || open !== undefined) continue;
      await takeFrom(store, takeItem(key, rate, { hits, refund: true }));
      events.push({ micros, rate, hits: -hits });
    } else if (kind === 'settle') {
      if (open === undefined) continue;
      const { item, outcome, event } = open;
      const used = Math.min(hits, 14);
      // The limit may have changed since the request began.
      await takeFrom(store, settlementTake({ ...item, rate }, outcome, used));
      event.hits = Math.min(used, item.hits);
      open = undefined;
    } else if (kind === 'charge') {
      await takeFrom(store, takeItem(key, settlingRate(rate), { hits }));
    } else {
      const holds = kind === 'hold' && open === undefined && hits > 0;
      const take = holds
        ? holdItem(key, rate, { hits, lifetimeMillis: 0x7fff_ffff })
        : takeItem(key, rate, { hits });
      const [outcome] = (await takeFrom(store, take)) as [TakeOutcome];
      // A charge is always allowed, because the usage already happened.
      if (outcome.overLimit || isCharge(rate, hits, false)) continue;
      const event = { micros, rate, hits };
      events.push(event);
      if (holds) open = { item: take, outcome, event };
    }
  }
  return events;
}

/**
 * Checks that over any period, the events took at most the capacity of each limit and what refilled. The time at which
 * a bucket with only these events is full is exact, in parts of a microsecond that both rates share.
 */
function checkBuckets(events: readonly Event[], limits: Pair<TokenBucketRate>): void {
  const parts = limits.reduce((product, { refillDenominator }) => product * BigInt(refillDenominator), 1n);
  const costOf = ({ refillNumerator, refillDenominator }: TokenBucketRate, hits: number): bigint =>
    (BigInt(hits) * BigInt(refillNumerator) * parts) / BigInt(refillDenominator);
  let full = 0n;
  for (const { micros, rate, hits } of events) {
    if (rate.kind !== 'token_bucket') continue;
    const now = BigInt(micros) * parts;
    if (full < now) full = now;
    full += costOf(rate, hits);
    if (full < now) full = now;
    if (hits > 0) expectSame(full <= now + costOf(rate, rate.maxTokens), true);
  }
}

/** Checks that the events of each window counted at most the limit. */
function checkWindows(events: readonly Event[]): void {
  let [window, count] = [-1, 0];
  for (const { micros, rate, hits } of events) {
    if (rate.kind !== 'window') continue;
    const start = rate.startOf(micros);
    if (start !== window) [window, count] = [start, 0];
    count = Math.max(0, count + hits);
    if (hits > 0) expectAtMost(count, rate.requestsPerUnit);
  }
}

/** Limits with the same refill, so that their tokens can be counted together. */
const SAME_REFILL: readonly TokenBucketRate[] = [
  tokenBucketRate(3, 7, minute),
  tokenBucketRate(10, 7, minute),
  tokenBucketRate(13, 7, minute),
  tokenBucketRate(10, 7, minute, 5),
  tokenBucketRate(10, 7, minute, 100),
];
/** Limits with different times to fill, costs and fractions of a microsecond. */
const ANY_REFILL: readonly TokenBucketRate[] = [
  ...SAME_REFILL,
  tokenBucketRate(10, 10, second),
  tokenBucketRate(5, 1, second),
  tokenBucketRate(10, 10, hour, 5),
  tokenBucketRate(3, 3, second),
  tokenBucketRate(100, 7, hour),
];
const WINDOWS: readonly WindowRate[] = [
  windowRate('minute', 0),
  windowRate('minute', 3),
  windowRate('minute', 10, { countsOnlyAllowed: true }),
  windowRate('minute', 13),
];
/** A window in debt keeps only the hits above its limit, so these limits get no refunds; see docs/policy/charges.md. */
const OWING_WINDOWS: readonly WindowRate[] = [
  windowRate('minute', 3, { maxDebt: 3 }),
  windowRate('minute', 10, { maxDebt: 4 }),
  windowRate('minute', 13),
];

describe.each<TestBench>([memoryBench(), new RedisBench('redis-server')])('two limits in $name', (bench) => {
  let servers: Pair<BucketStore>;
  beforeAll(async () => {
    await bench.start();
    const first = await bench.open();
    servers = [first, bench.name === 'memory' ? first : await bench.open()];
  });

  test('that refill equally allow at most the larger one over any period', async () => {
    await fc.assert(
      fc.asyncProperty(pairOf(SAME_REFILL), steps, fc.boolean(), async (limits, calls, mayRefund) => {
        const events = await takeInTurns(limits, calls, servers, bench, mayRefund);
        checkBuckets(events, limits);
        const [{ refillNumerator, refillDenominator }] = limits;
        const larger = Math.max(...limits.map(({ maxTokens }) => maxTokens));
        for (let from = 0; from < events.length; from++) {
          let sum = 0;
          for (const { micros, hits } of events.slice(from)) {
            // A refund may have found a full bucket.
            if (hits < 0) break;
            sum += hits;
            expectAtMost(
              sum,
              larger + ((micros - (events[from] as Event).micros) * refillDenominator) / refillNumerator,
            );
          }
        }
      }),
      runs(1500),
    );
  });

  test('that refill differently each allow at most what they would alone', async () => {
    await fc.assert(
      fc.asyncProperty(pairOf(ANY_REFILL), steps, fc.boolean(), async (limits, calls, mayRefund) => {
        checkBuckets(await takeInTurns(limits, calls, servers, bench, mayRefund), limits);
      }),
      runs(1500),
    );
  });

  test('are both full again after the longest time to fill', async () => {
    await fc.assert(
      fc.asyncProperty(pairOf(ANY_REFILL), steps, async (limits, calls) => {
        await takeInTurns(limits, calls, servers, bench, true);
        bench.clock.advance(Math.max(...limits.map(({ debtWhole }) => debtWhole)) + 2);
        for (const rate of limits) {
          const [outcome] = await takeFrom(servers[0], takeItem(`turns${run - 1}`, rate, { hits: 0 }));
          expectSame(outcome?.remaining, rate.maxTokens);
        }
      }),
      runs(300),
    );
  });

  test('are both full after a reset in either one', async () => {
    await fc.assert(
      fc.asyncProperty(pairOf(ANY_REFILL), steps, async (limits, calls) => {
        await takeInTurns(limits, calls, servers, bench, true);
        const key = `turns${run - 1}`;
        const all = { hits: Number.MAX_SAFE_INTEGER, refund: true };
        await takeFrom(servers[0], takeItem(key, limits[0], all));
        for (const rate of limits) {
          const looks = await takeFrom(servers[1], takeItem(key, rate, { hits: 0 }));
          expectEqual(looks[0]?.remaining, rate.maxTokens);
        }
      }),
      runs(300),
    );
  });

  test.each([
    ['windows', WINDOWS, true],
    ['windows with debt', OWING_WINDOWS, false],
  ] as const)('of %s allow at most the larger one', async (_, windows, mayGiveBack) => {
    await fc.assert(
      fc.asyncProperty(pairOf(windows), steps, async (limits, drawn) => {
        const calls = mayGiveBack ? drawn : drawn.filter(({ kind }) => kind === 'take' || kind === 'charge');
        checkWindows(await takeInTurns(limits, calls, servers, bench, mayGiveBack));
      }),
      runs(1500),
    );
  });
});
