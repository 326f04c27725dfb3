import { type AddressInfo, createServer } from 'node:net';
import { beforeEach, describe, expect, test } from '@jest/globals';

import { StorageError, type TakeResult } from '../../src/limiter/bucket-store.js';
import { concurrencyRate } from '../../src/limiter/holds/concurrency.js';
import { tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../src/limiter/window-unit.js';
import { turn } from '../../src/runtime/turns.js';
import { parseRedisUrl } from '../../src/storage/redis/connection/redis-address.js';
import type { RedisStoreOptions } from '../../src/storage/redis/redis-store-options.js';
import { holdItem, settlementTake } from '../support/limiter/hold-items.js';
import { REDIS } from '../support/limiter/store-options.js';
import { HUNDRED, takeItem } from '../support/limiter/take-items.js';
import { waitFor } from '../support/process/wait-for.js';
import { redisClient } from '../support/redis/redis-client.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { SingleRedisStore } from '../support/redis/single-stores.js';

const now = () => Math.floor(performance.now() * 1000);
const TIMEOUT_MICROS = 50_000;

let redis: RedisServer;
let stores: SingleRedisStore[];
let log: string[];

beforeEach(async () => {
  stores = [];
  log = [];
  redis = await startRedis();
});

function open(options: Partial<RedisStoreOptions> = {}): SingleRedisStore {
  const store = new SingleRedisStore({
    ...REDIS,
    address: parseRedisUrl(`127.0.0.1:${redis.port}`),
    timeoutMicros: TIMEOUT_MICROS,
    log: (level, message) => log.push(`${level}: ${message}`),
    ...options,
  });
  stores.push(store);
  return store;
}

async function reached(options: Partial<RedisStoreOptions> = {}): Promise<SingleRedisStore> {
  const store = open(options);
  await store.reached;
  return store;
}

/** A rate that refills so slowly that the duration of a test does not matter. */
const HUNDRED_A_YEAR = tokenBucketRate(100, 100, UNIT_MICROS.year);
const hit = (store: SingleRedisStore, key = 'a', deadline = Infinity) =>
  store.take([takeItem(key, HUNDRED_A_YEAR)], deadline);
const reason = (result: TakeResult) => (result instanceof StorageError ? result.reason : 'decided');

/** Makes one call per turn until `stop`, which resolves when all calls have settled. */
function callContinuously(store: SingleRedisStore) {
  const reasons: string[] = [];
  let running = true;
  const loop = (async () => {
    const open = new Set<Promise<void>>();
    while (running) {
      const one = Promise.resolve(hit(store, `h${reasons.length % 7}`)).then((result) => {
        reasons.push(reason(result));
        open.delete(one);
      });
      open.add(one);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await Promise.all(open);
  })();
  return {
    reasons,
    stop: async () => {
      running = false;
      await loop;
    },
  };
}

const recovery = (store: SingleRedisStore): Promise<unknown> =>
  waitFor('a decision', async () => reason(await hit(store, 'recovery')) === 'decided');

describe('during calls', () => {
  test('a long pause makes weir reconnect, and the service recovers', async () => {
    const store = await reached();
    const calls = callContinuously(store);
    redis.pause();
    // After the probes have failed, weir closes the socket, and knows only that there is no connection.
    await waitFor(
      'a torn down connection',
      () => calls.reasons.includes('breaker_open') && calls.reasons.at(-1) === 'disconnected',
    );
    expect(store.inFlight).toBe(0);
    redis.resume();
    await recovery(store);
    await calls.stop();
  });

  test('closed connections fail the pending calls, and later calls are decided', async () => {
    const store = await reached();
    const admin = redisClient(redis.port);
    const downReasons: string[] = [];
    let upCount = 0;
    store.onDown((why) => downReasons.push(why));
    store.onUp(() => upCount++);
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await waitFor('the loss to be seen', () => downReasons.length > 0);
    await recovery(store);
    expect([downReasons.length, upCount]).toEqual([1, 1]);
  });
});

describe('calls without an answer when the connection is lost', () => {
  test('are not sent again, because they may have run', async () => {
    const store = await reached({ timeoutMicros: 10_000_000 });
    const slots = concurrencyRate(10);
    const hold = holdItem('held', slots);
    expect(await store.take([hold], Infinity)).toMatchObject([{ hold: 'placed' }]);
    const admin = redisClient(redis.port);
    // Scripts wait, and other commands do not.
    await admin.call('CLIENT', 'PAUSE', '60000', 'WRITE');
    const running: unknown[] = [];
    const refund = takeItem('refunded', HUNDRED_A_YEAR, { refund: true });
    for (const take of [settlementTake(hold, {}), takeItem('taken', HUNDRED_A_YEAR), refund]) {
      running.push(store.take([take], Infinity));
      // The requests of one turn share a call.
      await turn();
    }
    const isBlocked = async () => /\bblocked_clients:[1-9]/.test(await admin.info('clients'));
    await waitFor('calls that wait in Redis', isBlocked);
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await admin.call('CLIENT', 'UNPAUSE');
    const lost = { reason: 'disconnected' };
    expect(await Promise.all(running)).toMatchObject([lost, lost, lost]);
  });
});

describe('deadlines and bounds', () => {
  test(
    'a slow Redis is no hung one for as long as REDIS_TIMEOUT says, for those who are more patient than ' +
      'others',
    async () => {
      const shortTimeoutStore = await reached({ timeoutMicros: 100_000 });
      const longTimeoutStore = await reached({ timeoutMicros: 600_000_000 });
      redis.pause();
      const failed = hit(shortTimeoutStore);
      const decided = hit(longTimeoutStore);
      expect(reason(await failed)).toBe('timeout');
      // The probes of this store also time out, far later than a second, until it gives up that connection.
      await waitFor('the connection to be given up', () => shortTimeoutStore.connections.active === 0);
      expect([longTimeoutStore.connected, longTimeoutStore.connections.closed]).toEqual([true, 0]);
      redis.resume();
      expect(reason(await decided)).toBe('decided');
    },
  );

  test('a REDIS_TIMEOUT longer than any timer does not open the breaker', async () => {
    const store = await reached({ timeoutMicros: 3_600_000_000_000_000 });
    redis.pause();
    const decided = hit(store);
    expect(reason(await hit(store, 'a', now() + 50_000))).toBe('timeout');
    expect(store.connected).toBe(true);
    redis.resume();
    expect(reason(await decided)).toBe('decided');
  });

  test('each take ends at its own deadline, and the tokens of a late answer stay taken', async () => {
    const store = await reached({ timeoutMicros: 2_000_000 });
    await hit(store);
    redis.pause();
    const start = now();
    const ends: string[] = [];
    const one = async (name: string, wait: number) => {
      const result = await hit(store, 'a', start + wait);
      ends.push(name);
      return reason(result);
    };
    // The later deadlines are set first, so the timer must be moved forward.
    const results = await Promise.all([one('late', 300_000), one('middle', 150_000), one('soon', 30_000)]);
    expect(results).toEqual(['timeout', 'timeout', 'timeout']);
    expect(ends).toEqual(['soon', 'middle', 'late']);
    expect(store.inFlight).toBe(3);
    redis.resume();
    await waitFor('the late answer', () => store.inFlight === 0);
    const look = await store.take([takeItem('a', HUNDRED_A_YEAR, { hits: 0 })], Infinity);
    expect(look).toMatchObject([{ remaining: 96 }]);
  });

  test('a call whose deadline has passed is not sent', async () => {
    const store = await reached();
    expect(reason(await hit(store, 'a', now() - 1))).toBe('full');
    expect(store.calls).toBe(0);
  });

  test('deadlines follow the injected clock', async () => {
    let time = 1_000_000;
    const store = await reached({ monotonicMicros: () => time });
    expect(reason(await hit(store, 'a', time))).toBe('full');
    redis.pause();
    const waiting = hit(store, 'a', time + 20_000);
    await waitFor('the call to be sent', () => store.calls === 1);
    time += 20_000;
    expect(reason(await waiting)).toBe('timeout');
  });

  test('takes fail immediately above the bound on takes in flight', async () => {
    const store = await reached({ maxInFlight: 10, timeoutMicros: 10_000_000 });
    redis.pause();
    // The bound counts limits, and each of these requests matches two.
    const two = (i: number) => [takeItem(`k${i}`, HUNDRED), takeItem(`l${i}`, HUNDRED)];
    const waiting = Array.from({ length: 5 }, (_, i) => store.take(two(i), now() + 300_000));
    // Redis can be busy.
    expect(hit(store)).toMatchObject({
      reason: 'full',
      message: expect.stringContaining(
        'the maximum of 10 limits that may wait for Redis (REDIS_MAX_IN_FLIGHT)',
      ),
    });
    expect((await Promise.all(waiting)).map((result) => reason(result))).toEqual(Array(5).fill('timeout'));
    // Unanswered takes still count, so that work does not accumulate for a Redis that hangs.
    expect(reason(hit(store) as TakeResult)).toBe('overloaded');
    redis.resume();
    await waitFor('room', () => store.inFlight === 0);
    expect(reason(await hit(store))).toBe('decided');
    // A single request larger than the bound is still accepted.
    const large = Array.from({ length: 20 }, (_, i) => takeItem(`k${i}`, HUNDRED));
    expect(reason(await store.take(large, Infinity))).toBe('decided');
  });

  test('takes above the bound fail as in an outage while others wait for the connection', async () => {
    redis.pause();
    const store = open({ maxInFlight: 10, timeoutMicros: 10_000_000 });
    const waiting = Array.from({ length: 10 }, (_, i) => hit(store, `k${i}`, now() + 300_000));
    expect(reason(hit(store) as TakeResult)).toBe('overloaded');
    expect((await Promise.all(waiting)).map(reason)).toEqual(Array(10).fill('disconnected'));
  });

  test('requests with many limits wait for replies to earlier ones, and other requests do not', async () => {
    const store = await reached({ timeoutMicros: 10_000_000 });
    redis.pause();
    const many = (name: string, deadline = Infinity) =>
      store.take(
        Array.from({ length: 200 }, (_, i) => takeItem(`${name}${i}`, HUNDRED_A_YEAR)),
        deadline,
      );
    const sent = ['a', 'b', 'c'].map((name) => many(name));
    const waiting = ['d', 'e', 'f'].map((name) => many(name));
    const late = many('late', now() + 50_000);
    await waitFor('the calls', () => store.calls >= 3);
    const other = hit(store);
    await waitFor('the call of the other request', () => store.calls >= 4);
    // Redis has not executed this request, and may only be busy with others.
    expect(reason(await late)).toBe('full');
    expect(store.calls).toBe(4);
    redis.resume();
    const results = await Promise.all([...sent, other, ...waiting]);
    expect(results.map(reason)).toEqual(Array(7).fill('decided'));
    expect([store.calls, store.inFlight]).toEqual([7, 0]);
    expect(await store.take([takeItem('late0', HUNDRED_A_YEAR, { hits: 0 })], Infinity)).toMatchObject([
      { remaining: 100 },
    ]);
  });

  test('requests with many limits leave half of the bound on takes in flight to others', async () => {
    const store = await reached({ maxInFlight: 100 });
    const many = (name: string) =>
      store.take(
        Array.from({ length: 30 }, (_, i) => takeItem(`${name}${i}`, HUNDRED)),
        Infinity,
      );
    const first = many('a');
    expect(many('b')).toMatchObject({
      reason: 'full',
      message: expect.stringContaining(
        'the maximum of 50 limits that may wait for Redis (half of REDIS_MAX_IN_FLIGHT)',
      ),
    });
    expect((await Promise.all([first, hit(store)])).map(reason)).toEqual(['decided', 'decided']);
  });

  test('a tiny deadline does not count as a failure of Redis', async () => {
    const store = await reached();
    for (let i = 0; i < 20; i++) await hit(store, 'a', now() + 1);
    expect(store.connected).toBe(true);
    expect(reason(await hit(store))).toBe('decided');
  });

  test('closing finishes running takes, refuses new ones, and leaves no connection', async () => {
    const store = await reached();
    const running = hit(store);
    const closed = store.close();
    expect(reason(hit(store) as TakeResult)).toBe('disconnected');
    expect(reason(await running)).toBe('decided');
    await closed;
    const admin = redisClient(redis.port);
    await waitFor('the connection to go', async () => {
      return !((await admin.client('LIST')) as string).includes('name=weir');
    });
  });

  test('closing also ends while Redis hangs or was never connected', async () => {
    const hung = await reached();
    redis.pause();
    const running = hit(hung);
    await hung.close();
    expect(reason(await running)).toBe('timeout');
    redis.resume();
    await redis.kill();
    const never = open();
    expect(reason(await hit(never))).toBe('disconnected');
    await never.close();
    expect(never.everReached).toBe(false);
  });
});

test('reports calls to an observer', async () => {
  const calls: [number, string | undefined][] = [];
  const store = await reached({
    observeCall: (micros, items, failure) => calls.push([micros > 0 ? items : -1, failure]),
  });
  await Promise.all([hit(store), hit(store, 'b')]);
  expect(calls).toEqual([[2, undefined]]);
  expect(store.calls).toBe(1);
});

describe('pauses between connection attempts', () => {
  test('are short until Redis was reached', async () => {
    let attempts = 0;
    const server = createServer((socket) => {
      attempts++;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    try {
      open({ address: parseRedisUrl(`127.0.0.1:${port}`), startup: { initialMs: 1, maxMs: 2 } });
      // With the usual pauses, this would take over a minute.
      await waitFor('many attempts', () => attempts > 200);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });

  test('have their usual length later', async () => {
    const store = await reached({ startup: { initialMs: 600_000, maxMs: 600_000 } });
    await redis.kill();
    await waitFor('Redis to be away', () => !store.connected);
    await redis.restart();
    await waitFor('Redis to be back', () => store.connected);
  });
});
