/* Tests requests across two Redis that change between the steps of a request: the tokens are given back. */

import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { StorageError, type TakeResult } from '../../src/limiter/bucket-store.js';
import { windowRate } from '../../src/limiter/fixed-window.js';
import { parseRedisUrl } from '../../src/storage/redis/connection/redis-address.js';
import { redisKey } from '../../src/storage/redis/redis-key.js';
import { ShardedStore } from '../../src/storage/sharded/sharded-store.js';
import { REDIS } from '../support/limiter/store-options.js';
import { HUNDRED, takeItem } from '../support/limiter/take-items.js';
import { RedisBench, takeFrom } from '../support/limiter/test-stores.js';
import { waitFor } from '../support/process/wait-for.js';
import { type PausableProxy, startPausableProxy } from '../support/redis/pausable-proxy.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { SingleRedisStore } from '../support/redis/single-stores.js';

const TIMEOUT_MICROS = 20_000_000;
const second = takeItem('s', windowRate('second', 2));
const tokens = takeItem('b', HUNDRED, { hits: 30 });
const minute = takeItem('m', windowRate('minute', 9), { hits: 4 });

describe('a request between two Redis', () => {
  const bench = new RedisBench('redis-server');
  let other: RedisServer;
  let mainProxy: PausableProxy;
  let otherProxy: PausableProxy;
  let main: SingleRedisStore;
  let perSecond: SingleRedisStore;
  let rival: SingleRedisStore;
  let split: ShardedStore;

  const clock = () => bench.clock.wallMicros();
  const open = async (port: number): Promise<SingleRedisStore> => {
    const store = new SingleRedisStore({
      ...REDIS,
      address: parseRedisUrl(`127.0.0.1:${port}`),
      timeoutMicros: TIMEOUT_MICROS,
      countDeniedHits: false,
      clock,
    });
    await store.reached;
    return store;
  };

  beforeAll(() => bench.start());
  beforeEach(async () => {
    other = await startRedis();
    mainProxy = await startPausableProxy(bench.port);
    otherProxy = await startPausableProxy(other.port);
    [main, perSecond, rival] = (await Promise.all(
      [mainProxy.port, otherProxy.port, other.port].map(open),
    )) as [SingleRedisStore, SingleRedisStore, SingleRedisStore];
    split = new ShardedStore({
      main,
      perSecond,
      timeoutMicros: TIMEOUT_MICROS,
      countDeniedHits: false,
      monotonicMicros: () => performance.now() * 1000,
    });
    // Both are partly used at the start.
    await takeFrom(main, takeItem('b', HUNDRED, { hits: 10 }), takeItem('m', minute.rate));
  });
  afterEach(async () => {
    mainProxy.resume();
    await bench.reset();
  });

  const stored = async () => (await bench.redis.mget(redisKey(tokens), redisKey(minute))).join(' ');
  /** Returns the used amount of the bucket and the window in the main Redis. */
  const used = async () => {
    const looks = [tokens, minute].map((take) => ({ ...take, hits: 0 }));
    return (await takeFrom(main, ...looks)).map((outcome) => outcome.used);
  };
  const settled = () =>
    waitFor('what was taken to be given back', () => {
      const { made, failed, skipped } = split.rollbackStats;
      return made + failed + skipped > 0;
    });

  const useUp = () => takeFrom(rival, takeItem('s', second.rate, { hits: 2 }));

  /**
   * Starts a take, which the second Redis denies if its window is used up. Runs `between` once the main Redis has
   * decided, before the reply of the second one arrives, and `then` afterwards.
   */
  async function takeAnd(
    between: () => Promise<unknown> = async () => {},
    then: () => Promise<void> | void = () => {},
  ): Promise<TakeResult> {
    const before = await stored();
    otherProxy.pause('replies');
    const taking = split.take([second, tokens, minute], Infinity);
    await waitFor(
      'both Redis to have taken',
      async () => (await stored()) !== before && otherProxy.received > 0,
    );
    await between();
    otherProxy.resume();
    await then();
    return taking;
  }
  /** Opens a connection to the main Redis without a proxy. */
  const direct = () => bench.openWith({ clock, countDeniedHits: false });

  test('is denied by a window of a second, and leaves no trace', async () => {
    await useUp();
    expect(await takeAnd()).toMatchObject([
      { overLimit: true },
      { overLimit: false, remaining: 90, used: 10 },
      { overLimit: false, remaining: 8, used: 1 },
    ]);
    await settled();
    expect(await used()).toEqual([10, 1]);
    expect(split.rollbackStats).toEqual({ made: 1, failed: 0, skipped: 0 });
    // The request was not counted.
    const [window] = await takeFrom(rival, takeItem('s', second.rate, { hits: 0 }));
    expect(window).toMatchObject({ used: 2 });
  });

  test('fails with the second Redis, and leaves no trace in the main one', async () => {
    const told = await takeAnd(async () => {
      await other.kill();
      await waitFor('the second Redis to be away', () => !perSecond.connected);
    });
    expect(told).toBeInstanceOf(StorageError);
    await settled();
    expect(await used()).toEqual([10, 1]);
    expect(split.rollbackStats).toEqual({ made: 1, failed: 0, skipped: 0 });
  });

  test('leaves the window of the main Redis alone that began meanwhile', async () => {
    await useUp();
    await takeAnd(async () => {
      bench.clock.advance(60_000_000);
      await takeFrom(await direct(), takeItem('m', minute.rate, { hits: 6 }));
    });
    await settled();
    expect(await used()).toEqual([0, 6]);
  });

  test('is not given back on another connection what it took on one that was lost', async () => {
    await useUp();
    const told = await takeAnd(async () => {
      await waitFor('the reply of the main Redis', () => main.inFlight === 0);
      mainProxy.disconnect();
      await waitFor('the next connection', () => main.connected && main.connections.opened > 1);
    });
    expect(told).toMatchObject([{ overLimit: true }, {}, {}]);
    await waitFor('the request to be counted', () => split.rollbackStats.skipped === 1);
    expect(split.rollbackStats).toEqual({ made: 0, failed: 0, skipped: 1 });
    expect(await used()).toEqual([40, 5]);
  });

  test('is given back once, though the answer to that is lost', async () => {
    await useUp();
    const before = await stored();
    await takeAnd(async () => {
      await waitFor('the reply of the main Redis', () => main.inFlight === 0);
      mainProxy.pause('replies');
    });
    await waitFor('the main Redis to have it back', async () => (await stored()) === before);
    await takeFrom(await direct(), takeItem('b', HUNDRED, { hits: 50 }));
    mainProxy.disconnect();
    mainProxy.resume();
    await settled();
    await waitFor('the next connection', () => main.connected && main.connections.opened > 1);
    expect(await used()).toEqual([60, 1]);
    expect(split.rollbackStats).toEqual({ made: 0, failed: 1, skipped: 0 });
  });
});
