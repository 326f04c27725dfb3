/* Tests what the store reports to the rest of weir: connections, availability, and the use of the deny cache. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { windowRate } from '../../src/limiter/fixed-window.js';
import type { Store } from '../../src/server/store/store.js';
import type { PoolStats } from '../../src/telemetry/reference/reference-stats.js';
import { HUNDRED, takeItem } from '../support/limiter/take-items.js';
import { takeFrom } from '../support/limiter/test-stores.js';
import { waitFor } from '../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { openStoreOf } from '../support/weir/settings.js';

let main: RedisServer;
let second: RedisServer;
let store: Store | undefined;

beforeEach(async () => {
  [main, second] = (await Promise.all([startRedis(), startRedis()])) as [RedisServer, RedisServer];
});
afterEach(async () => {
  await store?.close();
});

async function open(more: Readonly<Record<string, string>> = {}): Promise<Store> {
  const opened = openStoreOf({ REDIS_URL: `127.0.0.1:${main.port}`, ...more });
  store = opened;
  await waitFor('the store to be up', () => opened.up());
  return opened;
}

test('connections are counted for each Redis, and the store is up when both are', async () => {
  const opened = await open({ REDIS_PERSECOND: 'true', REDIS_PERSECOND_URL: `127.0.0.1:${second.port}` });
  const changes: boolean[] = [];
  opened.onChange((up) => changes.push(up));
  const pool = (name: string) => opened.pools().find((one) => one.name === name) as PoolStats;
  expect(opened.pools().map(({ name, active }) => [name, active])).toEqual([
    ['redis_pool', 1],
    ['redis_per_second_pool', 1],
  ]);
  const before = pool('redis_per_second_pool');
  expect(before.opened - before.closed).toBe(1);
  await second.kill();
  await waitFor('the store to be away', () => !opened.up());
  expect(pool('redis_per_second_pool')).toEqual({ ...before, active: 0, closed: before.closed + 1 });
  expect(pool('redis_pool').active).toBe(1);
  await second.restart();
  await waitFor('the store to be back', () => opened.up());
  const after = pool('redis_per_second_pool');
  expect(after.opened).toBeGreaterThan(before.opened);
  expect([after.active, after.opened - after.closed]).toEqual([1, 1]);
  expect([changes[0], changes.at(-1)]).toEqual([false, true]);
});

test('the longest wait is that of the slower Redis', async () => {
  const both = { REDIS_PERSECOND: 'true', REDIS_PERSECOND_URL: `127.0.0.1:${second.port}` };
  expect((await open({ ...both, REDIS_TIMEOUT: '1s', REDIS_PERSECOND_TIMEOUT: '3s' })).timeoutMicros).toBe(
    3_000_000,
  );
  await store?.close();
  expect((await open({ ...both, REDIS_TIMEOUT: '1s' })).timeoutMicros).toBe(1_000_000);
});

test.each([
  [{}, 'token buckets'],
  [{ LOCAL_CACHE_SIZE_IN_BYTES: '100000' }, 'token buckets and windows'],
  [{ LOCAL_CACHE_SIZE_IN_BYTES: '100000', DENY_CACHE_MAX_AGE: '0s' }, 'windows'],
  [{ LOCAL_CACHE_SIZE_IN_BYTES: '0' }, 'nothing'],
  [{ DENY_CACHE_MAX_AGE: '0s' }, 'nothing'],
])('with %j, the denials of %s are cached', async (env, kept) => {
  const opened = await open(env);
  const cached: string[] = [];
  for (const [name, rate] of [
    ['token buckets', HUNDRED],
    ['windows', windowRate('year', 100)],
  ] as const) {
    await takeFrom(opened.buckets, takeItem(name, rate, { hits: 100 }));
    await takeFrom(opened.buckets, takeItem(name, rate, { hits: 50 }));
    const [outcome] = await takeFrom(opened.buckets, takeItem(name, rate, { hits: 50 }));
    if (outcome?.cached) cached.push(name);
  }
  expect(cached.join(' and ') || 'nothing').toBe(kept);
  const stats = opened.localCacheStats();
  if (kept === 'nothing') expect(stats).toBeUndefined();
  else expect(stats).toMatchObject({ hitCount: cached.length, lookupCount: 6, entryCount: cached.length });
});
