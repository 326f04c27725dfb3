/*
 * Limits whose bucket several classes of callers share (`priorities`), on compiled policies. A request of a class never
 * takes the bucket below what the class keeps, the total never exceeds the limit, and memory and Redis decide alike
 * with three replicas, also after a reload that changes `keep`.
 */
import { beforeAll, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import type { BucketStore, Take, TakeOutcome } from '../../src/limiter/bucket-store.js';
import { settlingRate } from '../../src/limiter/local-rate.js';
import type { Rate } from '../../src/limiter/rate.js';
import { UNIT_MICROS } from '../../src/limiter/window-unit.js';
import type { CompiledPolicy } from '../../src/policy/compiled-policy.js';
import type { Rule } from '../../src/policy/rule.js';
import { DenyCache } from '../../src/storage/deny-cache.js';
import { MemoryStore } from '../../src/storage/memory/memory-store.js';
import { expectAtLeast, expectAtMost, expectEqual, expectSame } from '../support/assert/quick-expect.js';
import { runs } from '../support/assert/runs.js';
import { FakeClock } from '../support/clock/fake-clock.js';
import { ClusterBench } from '../support/limiter/cluster-bench.js';
import { newHoldId, settlementTake } from '../support/limiter/hold-items.js';
import { MEMORY } from '../support/limiter/store-options.js';
import { RedisBench, takeFrom } from '../support/limiter/test-stores.js';
import { entries, policyOf } from '../support/policy/policies.js';

// Starting Redis may be slow on a busy machine.
jest.setTimeout(180_000);

const CAPACITY = 12;
const CLASSES = ['low', 'middle', 'high', 'unnamed'] as const;
const REPLICAS = 3;

/** The limits. A token bucket has a refill time with a fraction of a microsecond. */
const LIMITS = {
  'a token bucket': `token_bucket: { max_tokens: ${CAPACITY}, tokens_per_fill: 7, fill_interval: 10s }`,
  'a window': `unit: minute, requests_per_unit: ${CAPACITY}`,
  slots: `concurrency: { max: ${CAPACITY}, expires_after: 40s }`,
  'reservations of a token bucket':
    `token_bucket: { max_tokens: ${CAPACITY}, tokens_per_fill: 3, fill_interval: 10s }, ` +
    'hold: { from: first_call, expires_after: 40s }, max_debt: 5',
  'reservations of a window': `unit: minute, requests_per_unit: ${CAPACITY}, hold: { from: first_call }, max_debt: 0`,
} as const;
type Kind = keyof typeof LIMITS;
const KINDS = Object.keys(LIMITS) as readonly Kind[];
const KINDS_WITHOUT_HOLDS = ['a token bucket', 'a window'] as const satisfies readonly Kind[];

const keeps = fc.record({
  low: fc.oneof(fc.integer({ min: 0, max: CAPACITY - 1 }), fc.constantFrom('50%', '33.3%', '91%')),
  middle: fc.integer({ min: 0, max: CAPACITY - 1 }),
});
type Keeps = typeof keeps extends fc.Arbitrary<infer Value> ? Value : never;

const call = fc.record({
  name: fc.constantFrom(...CLASSES),
  hits: fc.integer({ min: 0, max: 5 }),
  /** The use that the end of a request with a hold reports; undefined if it does not end in this step. */
  used: fc.option(fc.integer({ min: 0, max: 8 }), { nil: undefined }),
});
const step = fc.record({
  wait: fc.oneof(
    fc.integer({ min: 0, max: 3 * UNIT_MICROS.second }),
    fc.integer({ min: 0, max: 2 * UNIT_MICROS.minute }),
  ),
  replica: fc.integer({ min: 0, max: REPLICAS - 1 }),
  calls: fc.array(call, { minLength: 1, maxLength: 8 }),
  reload: fc.option(keeps, { nil: undefined, freq: 5 }),
});
const severalClasses = fc.record({
  keeps,
  steps: fc.array(
    fc.record({
      wait: fc.integer({ min: 0, max: 30 * UNIT_MICROS.second }),
      requests: fc.array(fc.array(call, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 }),
    }),
    { minLength: 2, maxLength: 8 },
  ),
});
const scenario = fc.record({ keeps, steps: fc.array(step, { minLength: 2, maxLength: 15 }) });

function compiled(kind: Kind, { low, middle }: Keeps): CompiledPolicy {
  const keep = `{ low: ${low}, middle: ${middle}, high: 0 }`;
  return policyOf(
    `domain: d\ndescriptors: [{ key: tenant, descriptors: [{ key: class, rate_limit: { ${LIMITS[kind]}, ` +
      `priorities: { by: class, keep: ${keep} } } }] }]\n`,
  );
}

/** Number of sequences so far, each of which has its own bucket. */
let run = 0;

function matched(policy: CompiledPolicy, name: string) {
  const asked = name === '' ? [`tenant=${run}`] : [`tenant=${run}`, `class=${name}`];
  const { rules, keys, hashTagLength } = policy.match(entries(...asked));
  return { rule: rules[0] as Rule, key: keys[0] as string, hashTagLength };
}

function takeOf(policy: CompiledPolicy, name: string, hits: number): Take {
  const { rule, key, hashTagLength } = matched(policy, name);
  const holds = rule.hold && { id: newHoldId(), lifetimeMillis: rule.hold.expiresAfterMillis };
  return { key, hashTagLength, rate: rule.rate as Rate, hits, refund: false, enforcement: 'enforce', holds };
}

const wholeOf = (policy: CompiledPolicy): Rate => (policy.rules[0] as Rule).rate as Rate;

/** Returns what is left in the bucket for a class that keeps nothing. */
function leftIn(store: MemoryStore, policy: CompiledPolicy, take: Take): number {
  const { key, hashTagLength, holds } = take;
  const rate = wholeOf(policy);
  const look: Take = { key, hashTagLength, rate, hits: 0, refund: true, enforcement: 'observe', holds };
  return (store.take([look]) as readonly TakeOutcome[])[0]?.remaining ?? 0;
}

/** The number of hits that a class leaves. */
const keptBy = (policy: CompiledPolicy, name: string): number =>
  wholeOf(policy).reportedLimit - (matched(policy, name).rule.rate as Rate).reportedLimit;

/** A request that holds its hits until it ends. */
interface InFlight {
  readonly take: Take;
  readonly outcome: TakeOutcome;
}

describe.each([new RedisBench('redis-server'), new ClusterBench('redis-server')])('in $name', (bench) => {
  beforeAll(() => bench.start());

  test.each(KINDS)('three replicas share %s as memory does, and leave what a class keeps', async (kind) => {
    const replicas: BucketStore[] = [];
    for (let i = 0; i < REPLICAS; i++) replicas.push(await bench.open());
    let denied = 0;
    await fc.assert(
      fc.asyncProperty(scenario, async ({ keeps: first, steps }) => {
        run++;
        let policy = compiled(kind, first);
        const memory = new MemoryStore({ ...MEMORY, clock: bench.clock });
        let inFlight: InFlight[] = [];
        for (const { wait, replica, calls, reload } of steps) {
          bench.clock.advance(wait);
          if (reload !== undefined) policy = compiled(kind, reload);
          const store = replicas[replica] as BucketStore;
          const takes = calls.map(({ name, hits }) => takeOf(policy, name, hits));
          const expected = takes.map((take, i) => {
            const [outcome] = memory.take([take]) as readonly [TakeOutcome];
            if (outcome.overLimit) denied++;
            else if (take.hits > 0)
              expectAtLeast(leftIn(memory, policy, take), keptBy(policy, calls[i]?.name ?? ''));
            return outcome;
          });
          const found = await Promise.all(takes.map(async (take) => (await takeFrom(store, take))[0]));
          expectEqual(found, expected);
          const ended: InFlight[] = [];
          takes.forEach((take, i) => {
            const outcome = expected[i] as TakeOutcome;
            if (outcome.hold === 'placed') inFlight.push({ take, outcome });
          });
          for (const { used } of calls) {
            const oldest = used === undefined ? undefined : inFlight.shift();
            if (oldest === undefined) continue;
            ended.push(oldest);
            const whole = { ...oldest.take, rate: wholeOf(policy) };
            const end = settlementTake(whole, oldest.outcome, used);
            const [settled] = memory.take([end]) as readonly [TakeOutcome];
            expectEqual((await takeFrom(store, end))[0], settled);
          }
          inFlight = inFlight.filter((one) => !ended.includes(one));
        }
      }),
      runs(bench instanceof RedisBench ? 60 : 20),
    );
    expect(denied).toBeGreaterThan(10);
  });

  test.each(KINDS)(
    'a request of several classes takes from %s as in memory, all or nothing',
    async (kind) => {
      const store = await bench.open();
      let denied = 0;
      let passed = 0;
      await fc.assert(
        fc.asyncProperty(severalClasses, async ({ keeps: keep, steps }) => {
          run++;
          const policy = compiled(kind, keep);
          const memory = new MemoryStore({ ...MEMORY, clock: bench.clock });
          for (const { wait, requests } of steps) {
            bench.clock.advance(wait);
            // Requests of one turn share a call.
            const takes = requests.map((calls) => calls.map(({ name, hits }) => takeOf(policy, name, hits)));
            const expected = takes.map((request) => memory.take(request) as readonly TakeOutcome[]);
            for (const [i, outcomes] of expected.entries()) {
              const isDenied = outcomes.some(({ overLimit }) => overLimit);
              if (isDenied) denied++;
              else if (requests[i]?.some(({ hits }) => hits > 0)) passed++;
            }
            expectEqual(await Promise.all(takes.map((request) => takeFrom(store, ...request))), expected);
          }
        }),
        runs(bench instanceof RedisBench ? 60 : 20),
      );
      expect(Math.min(denied, passed)).toBeGreaterThan(10);
    },
  );
});

describe.each(KINDS_WITHOUT_HOLDS)('with deny caches, %s', (kind) => {
  test('has the same decisions as without', () => {
    let answers = 0;
    fc.assert(
      fc.property(scenario, ({ keeps: first, steps }) => {
        run++;
        const clock = new FakeClock();
        let policy = compiled(kind, first);
        const [plain, shared] = [0, 1].map(() => new MemoryStore({ ...MEMORY, clock })) as [
          MemoryStore,
          MemoryStore,
        ];
        const caches = Array.from(
          { length: REPLICAS },
          () =>
            new DenyCache({
              store: shared,
              maxAgeMicros: UNIT_MICROS.second,
              windows: true,
              maxEntries: 100,
              monotonicMicros: () => clock.monotonicMicros(),
            }),
        );
        for (const { wait, replica, calls, reload } of steps) {
          clock.advance(wait);
          if (reload !== undefined) policy = compiled(kind, reload);
          for (const { name, hits } of calls) {
            const take = takeOf(policy, name, hits);
            const [cached] = (caches[replica] as DenyCache).take([take], Infinity) as readonly [TakeOutcome];
            const [asked] = plain.take([take]) as readonly [TakeOutcome];
            if (cached.cached) answers++;
            expectSame(cached.overLimit, asked.overLimit);
            // A cached time until a fraction of a token may be one microsecond too short.
            expectAtMost(Math.abs(cached.waitMicros - asked.waitMicros), 1);
          }
        }
      }),
      runs(200),
    );
    expect(answers).toBeGreaterThan(20);
  });
});

const load = fc.record({
  kept: fc.integer({ min: 1, max: CAPACITY - 1 }),
  steps: fc.array(
    fc.record({
      wait: fc.integer({ min: 0, max: 8 * UNIT_MICROS.second }),
      flood: fc.integer({ min: 0, max: 40 }),
      asked: fc.integer({ min: 0, max: 6 }),
      hits: fc.constantFrom(1, 1, 2),
      /** Number of requests with holds that end, and what each of them has used. */
      ends: fc.integer({ min: 0, max: 10 }),
      used: fc.integer({ min: 0, max: 2 }),
    }),
    { minLength: 5, maxLength: 40 },
  ),
});

/** Returns a limit like that of a kind, of `most` instead of {@link CAPACITY}, and without classes. */
function limitWithoutClasses(kind: Kind, most: number): CompiledPolicy {
  const limit = LIMITS[kind].replace(String(CAPACITY), String(most));
  return policyOf(`domain: d\ndescriptors: [{ key: tenant, rate_limit: { ${limit} } }]\n`);
}

describe('the guarantee', () => {
  test.each(KINDS)('a class within what another one keeps of %s is never denied', (kind) => {
    let taken = 0;
    fc.assert(
      fc.property(load, ({ kept, steps }) => {
        run++;
        const clock = new FakeClock();
        const policy = compiled(kind, { low: kept, middle: 0 });
        // What the class with the guarantee sends: as much as a limit of what the other class keeps would allow.
        const allowance = limitWithoutClasses(kind, kept);
        const [store, own] = [new MemoryStore({ ...MEMORY, clock }), new MemoryStore({ ...MEMORY, clock })];
        const inFlight: (readonly [store: MemoryStore, request: InFlight, whole: Rate])[][] = [];
        const passes = (of: MemoryStore, take: Take, whole: Rate): (typeof inFlight)[number] | undefined => {
          const [outcome] = of.take([take]) as readonly [TakeOutcome];
          return outcome.overLimit ? undefined : [[of, { take, outcome }, whole]];
        };
        for (const { wait, flood, asked, hits, ends, used } of steps) {
          clock.advance(wait);
          for (let i = 0; i < flood; i++) {
            const passed = passes(store, takeOf(policy, 'low', hits), wholeOf(policy));
            if (passed !== undefined) inFlight.push(passed);
          }
          for (let i = 0; i < asked; i++) {
            const free = passes(own, takeOf(allowance, '', hits), wholeOf(allowance));
            if (free === undefined) continue;
            const passed = passes(store, takeOf(policy, 'high', hits), wholeOf(policy));
            expectSame(passed !== undefined, true);
            inFlight.push([...free, ...(passed ?? [])]);
            taken++;
          }
          for (const request of inFlight.splice(0, ends)) {
            for (const [of, { take, outcome }, whole] of request) {
              if (outcome.hold !== 'placed') continue;
              of.take([settlementTake({ ...take, rate: whole }, outcome, Math.min(used, take.hits))]);
            }
          }
        }
      }),
      runs(150),
    );
    expect(taken).toBeGreaterThan(100);
  });

  test('all classes of a token bucket together stay within its capacity and its refill', () => {
    fc.assert(
      fc.property(load, ({ kept, steps }) => {
        run++;
        const clock = new FakeClock();
        const policy = compiled('a token bucket', { low: kept, middle: 0 });
        const store = new MemoryStore({ ...MEMORY, clock });
        let [elapsed, total] = [0, 0];
        for (const { wait, flood, asked } of steps) {
          clock.advance(wait);
          elapsed += wait;
          for (let i = 0; i < flood + asked; i++) {
            const take = takeOf(policy, i < flood ? 'low' : 'high', 1);
            if (!(store.take([take]) as readonly [TakeOutcome])[0].overLimit) total++;
          }
        }
        expectAtMost(total, CAPACITY + (elapsed * 7) / (10 * UNIT_MICROS.second));
      }),
      runs(150),
    );
  });

  test('a class that is alone gets its part at once, and then the full rate', () => {
    const clock = new FakeClock();
    const policy = compiled('a token bucket', { low: '50%', middle: 0 });
    const store = new MemoryStore({ ...MEMORY, clock });
    const passed = (): number => {
      let count = 0;
      while (!(store.take([takeOf(policy, 'low', 1)]) as readonly [TakeOutcome])[0].overLimit) count++;
      return count;
    };
    expect(passed()).toBe(6);
    for (let i = 0; i < 10; i++) {
      clock.advance(10 * UNIT_MICROS.second);
      expect(passed()).toBe(6);
      clock.advance((10 / 7) * UNIT_MICROS.second + 1);
      expect(passed()).toBe(1);
    }
  });
});

test('the ends of holds count in the whole limit', () => {
  const policy = compiled('reservations of a window', { low: '50%', middle: 0 });
  const { rule } = matched(policy, 'low');
  expect(rule.shared?.rate).toBe(wholeOf(policy));
  expect(settlingRate(wholeOf(policy)).reportedLimit).toBe(CAPACITY);
});
