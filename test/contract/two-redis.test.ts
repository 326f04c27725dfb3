import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { StorageError, type Take, type TakeOutcome } from '../../src/limiter/bucket-store.js';
import { windowRate } from '../../src/limiter/fixed-window.js';
import type { Rate } from '../../src/limiter/rate.js';
import { tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { MemoryStore } from '../../src/storage/memory/memory-store.js';
import { parseRedisUrl } from '../../src/storage/redis/connection/redis-address.js';
import { ShardedStore } from '../../src/storage/sharded/sharded-store.js';
import { MEMORY, REDIS } from '../support/limiter/store-options.js';
import { HUNDRED, takeItem } from '../support/limiter/take-items.js';
import { RedisBench, takeFrom } from '../support/limiter/test-stores.js';
import { waitFor } from '../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { SingleRedisStore } from '../support/redis/single-stores.js';

const BUCKETS: readonly (readonly [key: string, rate: Rate])[] = [
  ['s', windowRate('second', 2)],
  ['t', windowRate('second', 5)],
  ['m', windowRate('minute', 4)],
  ['b', tokenBucketRate(3, 1, 1_000_000)],
];

const item: fc.Arbitrary<Take> = fc
  .record({
    bucket: fc.constantFrom(...BUCKETS),
    hits: fc.integer({ min: 0, max: 3 }),
    enforcement: fc.constantFrom('enforce' as const, 'observe' as const, 'quota' as const),
  })
  .map(({ bucket: [key, rate], ...options }) => takeItem(key, rate, options));

const requests = fc.array(
  fc.record({
    wait: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 700_000 })),
    items: fc.array(item, { minLength: 1, maxLength: 4 }),
  }),
  { minLength: 1, maxLength: 15 },
);

/** The outcome without the mark for an undo, and with a wait that may differ by 1 µs. */
const comparable = ({ waitMicros, undoAtMicros: _, ...outcome }: TakeOutcome) => ({
  ...outcome,
  waitMillis: Math.round(waitMicros / 1000),
});

describe('two Redis as one store', () => {
  const main = new RedisBench('redis-server');
  const perSecond = new RedisBench('redis-server');
  beforeAll(async () => {
    await Promise.all([main.start(), perSecond.start()]);
  });
  afterEach(async () => {
    await Promise.all([main.reset(), perSecond.reset()]);
  });

  /** The refunds whose results are not known so far. */
  let givingBack: Set<readonly Take[]>;

  async function open(countDeniedHits: boolean): Promise<ShardedStore> {
    const options = { countDeniedHits, clock: () => main.clock.wallMicros() };
    givingBack = new Set();
    return new ShardedStore({
      main: await main.openWith(options),
      perSecond: await perSecond.openWith(options),
      timeoutMicros: 10_000_000,
      countDeniedHits,
      monotonicMicros: () => performance.now() * 1000,
      onRollback: (refunds) => {
        if (!givingBack.delete(refunds)) givingBack.add(refunds);
      },
    });
  }

  test.each([true, false])(
    'decide as memory does (windows count denied hits: %s)',
    async (countDeniedHits) => {
      const split = await open(countDeniedHits);
      let run = 0;
      await fc.assert(
        fc.asyncProperty(requests, async (turns) => {
          run++;
          const memory = new MemoryStore({ ...MEMORY, clock: main.clock, countDeniedHits });
          for (const { wait, items } of turns) {
            main.clock.advance(wait);
            const named = items.map((one) => ({ ...one, key: `${run}${one.key}` }));
            const told = await takeFrom(split, ...named);
            expect(told.map(comparable)).toEqual(memory.take(named).map(comparable));
            await waitFor('the hits of a denied request to be given back', () => givingBack.size === 0);
          }
        }),
        { numRuns: 60 },
      );
    },
  );

  test('only windows of a second are in the second Redis', async () => {
    const split = await open(true);
    const rates = BUCKETS.map(([key, rate]) => takeItem(key, rate));
    // Windows of several seconds, or with debt, are in the main Redis.
    const several = takeItem('x', windowRate('second', 3, { multiplier: 5 }));
    const owing = takeItem('y', windowRate('second', 3, { maxDebt: 3 }));
    await takeFrom(split, ...rates, several, owing, takeItem('o!5/second', windowRate('second', 5)));
    const buckets = async (bench: RedisBench) =>
      (await bench.redis.keys('*')).map((key) => key.replace(/^.*\}/, '')).filter((key) => key !== 'probe');
    expect((await buckets(perSecond)).sort()).toEqual(['o!5/second', 's', 't']);
    expect((await buckets(main)).sort()).toEqual(['b', 'm', 'x', 'y']);
  });
});

test('either Redis away is an error of those requests that need it', async () => {
  const servers: RedisServer[] = [];
  const stores: SingleRedisStore[] = [];
  for (let i = 0; i < 2; i++) {
    const server = await startRedis();
    servers.push(server);
    stores.push(new SingleRedisStore({ ...REDIS, address: parseRedisUrl(`127.0.0.1:${server.port}`) }));
  }
  await Promise.all(stores.map(({ reached }) => reached));
  const [main, perSecond] = stores as [SingleRedisStore, SingleRedisStore];
  const split = new ShardedStore({
    main,
    perSecond,
    timeoutMicros: 2_000_000,
    countDeniedHits: true,
    monotonicMicros: () => performance.now() * 1000,
  });
  const second = takeItem('s', windowRate('second', 1_000_000));
  const tokens = takeItem('b', HUNDRED);
  const take = (...takes: Take[]) => split.take(takes, Infinity);

  await servers[1]!.kill();
  await waitFor('the second Redis to be away', () => !perSecond.connected);
  expect(await take(second, tokens)).toBeInstanceOf(StorageError);
  expect(await take(second)).toBeInstanceOf(StorageError);
  // What the failed request took is given back.
  await waitFor('a give-back', () => split.rollbackStats.made === 1);
  expect(await take(tokens)).toMatchObject([{ overLimit: false, remaining: 99 }]);

  await servers[1]!.restart();
  await waitFor('its return', () => perSecond.connected);
  await servers[0]!.kill();
  await waitFor('the main Redis to be away', () => !main.connected);
  expect(await take(second, tokens)).toBeInstanceOf(StorageError);
  expect(await take(second)).toMatchObject([{ overLimit: false }]);
});
