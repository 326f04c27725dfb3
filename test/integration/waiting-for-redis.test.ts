/* Tests calls that arrive while Redis is not connected yet, or is being replaced. */

import { beforeEach, describe, expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { STATUS } from '../../src/grpc/grpc-server.js';
import { StorageError, type TakeResult } from '../../src/limiter/bucket-store.js';
import type { StoreFault } from '../../src/limiter/failure-policy.js';
import { tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../src/limiter/window-unit.js';
import { parseRedisUrl } from '../../src/storage/redis/connection/redis-address.js';
import type { RedisStoreOptions } from '../../src/storage/redis/redis-store-options.js';
import { ONLY_PARTITION } from '../../src/storage/redis/script-batch.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { REDIS } from '../support/limiter/store-options.js';
import { takeItem } from '../support/limiter/take-items.js';
import { descriptor } from '../support/policy/decider.js';
import { freePorts } from '../support/process/free-port.js';
import { waitFor } from '../support/process/wait-for.js';
import { type PausableProxy, startPausableProxy } from '../support/redis/pausable-proxy.js';
import { redisClient } from '../support/redis/redis-client.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { SingleRedisStore } from '../support/redis/single-stores.js';
import { startWeir } from '../support/weir/weir.js';

let redis: RedisServer;
let proxy: PausableProxy;
let store: SingleRedisStore | undefined;
let log: string[];
let faults: StoreFault[];

beforeEach(async () => {
  log = [];
  faults = [];
  redis = await startRedis();
  proxy = await startPausableProxy(redis.port);
});

function open(options: Partial<RedisStoreOptions> = {}): SingleRedisStore {
  store = new SingleRedisStore({
    ...REDIS,
    address: parseRedisUrl(`127.0.0.1:${proxy.port}`),
    timeoutMicros: 20_000_000,
    log: (level, message) => log.push(`${level}: ${message}`),
    observeFault: (fault) => faults.push(fault),
    ...options,
  });
  return store;
}

/** A rate that does not refill during a test. */
const HUNDRED = tokenBucketRate(100, 100, UNIT_MICROS.day);
const now = () => Math.floor(performance.now() * 1000);
const take = (key: string, options = {}, deadline = Infinity) =>
  store!.take([takeItem(key, HUNDRED, options)], deadline);
const reason = (result: TakeResult) => (result instanceof StorageError ? result.reason : 'decided');
const remaining = async (key: string) =>
  ((await take(key, { hits: 0 })) as readonly { remaining: number }[])[0]!.remaining;

describe('at the start', () => {
  test('calls wait for the first connection, which decides them', async () => {
    proxy.pause('replies');
    open();
    const calls = [take('a'), take('a'), take('b')];
    await waitFor('the greeting', () => proxy.received > 0);
    proxy.resume();
    expect((await Promise.all(calls)).map(reason)).toEqual(['decided', 'decided', 'decided']);
    expect(await remaining('a')).toBe(98);
  });

  test('a call waits no longer than its caller, and reports that Redis was not connected', async () => {
    proxy.pause('replies');
    open();
    let answer = 'full';
    // On a slow machine, a short deadline has passed before the call.
    for (let ms = 20; answer === 'full'; ms *= 2) answer = reason(await take('a', {}, now() + ms * 1000));
    expect(answer).toBe('disconnected');
    expect(store!.inFlight).toBe(1);
    proxy.resume();
    await store!.reached;
    await waitFor('the room to be given back', () => store!.inFlight === 0);
    // weir did not send a take after its caller had given up.
    expect(await remaining('a')).toBe(100);
  });

  test('at most REDIS_MAX_IN_FLIGHT calls wait', async () => {
    proxy.pause('replies');
    open({ maxInFlight: 10 });
    const calls = Array.from({ length: 10 }, (_, i) => take(`k${i}`));
    expect(take('one too many')).toBeInstanceOf(StorageError);
    proxy.resume();
    expect((await Promise.all(calls)).map(reason)).toEqual(Array(10).fill('decided'));
  });

  test('a call that cannot wait is answered immediately', () => {
    open();
    expect(store!.take([takeItem('a', HUNDRED)], Infinity, false)).toBeInstanceOf(StorageError);
  });

  test('calls end with the first failed attempt, and later calls do not wait', async () => {
    const [nowhere] = await freePorts(1);
    open({ address: parseRedisUrl(`127.0.0.1:${nowhere}`) });
    expect(reason(await take('a'))).toBe('disconnected');
    expect(take('a')).toBeInstanceOf(StorageError);
    expect(faults).toContain('refused');
  });

  test('a process that stalls repeatedly does not blame Redis', async () => {
    open({ address: parseRedisUrl(`127.0.0.1:${redis.port}`), timeoutMicros: 20_000 });
    const nothing = new Int32Array(new SharedArrayBuffer(4));
    while (!store!.connected) {
      await new Promise((resolve) => setImmediate(resolve));
      // This is longer than every timeout for Redis.
      Atomics.wait(nothing, 0, 0, 1100);
    }
    expect([faults, log]).toEqual([[], [expect.stringMatching(/is up$/)]]);
  });

  test('no call to a new worker fails while it connects to Redis', async () => {
    proxy.pause('replies');
    const policy =
      'domain: d\ndescriptors: [{ key: k, rate_limit: { token_bucket: { max_tokens: 100, fill_interval: 1h } } }]\n';
    const server = await startWeir({
      policy,
      env: { REDIS_URL: `127.0.0.1:${proxy.port}`, WORKERS: '2', REDIS_TIMEOUT: '30s' },
      untilHealthy: false,
    });
    await waitFor('the port to be open', () =>
      server.log().some(({ msg }) => String(msg).startsWith('weir serves')),
    );
    const clients = Array.from({ length: 4 }, () => new RlsClient(server.grpcPort));
    const calls = clients.map((client) => client.ask('d', [descriptor(['k=v'])]));
    await waitFor('both workers to greet', () => proxy.accepted >= 2);
    proxy.resume();
    for (const { code, response, details } of await Promise.all(calls)) {
      expect([details, code, response?.overallCode]).toEqual(['', STATUS.OK, CODE.OK]);
    }
  });
});

describe('a lost connection', () => {
  test('does not send what a request gives back on another connection, even if it had to wait', async () => {
    open();
    await store!.reached;
    const taken = Array.from({ length: 20 }, (_, i) => takeItem(`k${i}`, HUNDRED, { hits: 10 }));
    expect(await store!.take(taken, Infinity)).toHaveLength(20);
    const takenOn = store!.connectionId;
    proxy.pause('replies');
    const others = Array.from({ length: 1000 }, (_, i) => takeItem(`other ${i}`, HUNDRED));
    const busy = store!.take(others, Infinity);
    await waitFor('the call to be sent', () => store!.calls === 2);
    // The refund waits for the reply to the bulk request.
    const refunds = {
      partition: ONLY_PARTITION,
      items: taken.map((take) => ({ ...take, refund: true })),
      deadlineMicros: Infinity,
    };
    const given = store!.rollBackPartition({ ...refunds, mayWait: true }, takenOn);
    proxy.disconnect();
    proxy.resume();
    expect(await given).toBe('failed');
    expect(reason(await busy)).toBe('disconnected');
    expect(await remaining('k0')).toBe(90);
    expect(store!.inFlight).toBe(0);
  });
});

describe('a Redis that refuses everything', () => {
  /** Opens the store, and makes its Redis the replica of another one, to which the next connection leads. */
  async function withNextMaster(check: () => Promise<void>): Promise<void> {
    const second = await startRedis();
    let port = redis.port;
    const moving = await startPausableProxy(() => port);
    const admin = redisClient(redis.port);
    open({ address: parseRedisUrl(`127.0.0.1:${moving.port}`) });
    await store!.reached;
    await admin.replicaof('127.0.0.1', String(second.port));
    port = second.port;
    await check();
  }

  test('a master that became a replica is left immediately, and the call is sent to the next master', () =>
    withNextMaster(async () => {
      expect(reason(await take('a'))).toBe('decided');
      expect(store!.calls).toBe(2);
      expect(faults).toEqual(['readonly']);
    }));

  test('requests that were not sent yet also wait for the next master', () =>
    withNextMaster(async () => {
      // The second and the third request wait for the reply to the first.
      const calls = ['a', 'b', 'c'].map((name) =>
        store!.take(
          Array.from({ length: 900 }, (_, i) => takeItem(`${name}${i}`, HUNDRED)),
          Infinity,
        ),
      );
      expect((await Promise.all(calls)).map(reason)).toEqual(['decided', 'decided', 'decided']);
      expect(store!.inFlight).toBe(0);
    }));

  test('a Redis that loads data, or cannot write, gets no calls until it can', async () => {
    open();
    await store!.reached;
    const admin = redisClient(redis.port);
    await admin.config('SET', 'min-replicas-to-write', '1');
    expect(reason(await take('a'))).toBe('rejected');
    expect(store!.connected).toBe(false);
    expect(take('a')).toMatchObject({ reason: 'breaker_open' });
    expect(log.at(-1)).toMatch(/it accepts no commands or no writes at the moment; check its log \(NOREPL/);
    await admin.config('SET', 'min-replicas-to-write', '0');
    await waitFor('the return', () => store!.connected);
    expect(reason(await take('a'))).toBe('decided');
    expect(new Set(faults)).toEqual(new Set(['loading']));
  });
});
