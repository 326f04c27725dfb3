/*
 * Tests blocks and exemptions with a real Redis that fails or denies access, and the effect of other processes on deny
 * caches.
 */

import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { StorageError } from '../../src/limiter/bucket-store.js';
import { systemClock } from '../../src/limiter/clock.js';
import { tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../src/limiter/window-unit.js';
import type { Store } from '../../src/server/store/store.js';
import { parseRedisUrl } from '../../src/storage/redis/connection/redis-address.js';
import { ProcessBook } from '../support/controls/books.js';
import { control } from '../support/controls/controls.js';
import { REDIS } from '../support/limiter/store-options.js';
import { takeItem } from '../support/limiter/take-items.js';
import { takeFrom } from '../support/limiter/test-stores.js';
import { waitFor } from '../support/process/wait-for.js';
import { redisCommand } from '../support/redis/redis-command.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { SingleRedisStore } from '../support/redis/single-stores.js';
import { openStoreOf } from '../support/weir/settings.js';

// Redis can be slow to start on a busy machine.
jest.setTimeout(60_000);

const SLOW = tokenBucketRate(10, 1, UNIT_MICROS.hour);
const closers: (() => unknown)[] = [];
let redis: RedisServer;

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function start(...args: string[]): Promise<void> {
  redis = await startRedis({ args });
  closers.push(() => redis.stop());
}

const command = (name: string, ...args: string[]): Promise<unknown> => redisCommand(redis, name, ...args);

/** Opens the store and the control book of one process. */
async function open(login = ''): Promise<{ one: ProcessBook; store: SingleRedisStore }> {
  const store = new SingleRedisStore({
    ...{ ...REDIS, timeoutMicros: 500_000 },
    address: parseRedisUrl(`redis://${login}127.0.0.1:${redis.port}`),
  });
  const one = new ProcessBook(store, systemClock);
  store.onUp(() => one.comeUp());
  closers.push(async () => {
    await one.book.close();
    await store.close();
  });
  await store.reached;
  return { one, store };
}

const reasonOf = (result: unknown): unknown => (result instanceof StorageError ? result.reason : result);

describe('controls in Redis', () => {
  test('survive a killed Redis, and are loaded again with its data', async () => {
    await start('--appendonly', 'yes', '--appendfsync', 'always');
    const { one, store } = await open();
    const [kept, late] = [control('a'), control('b')];
    expect(await one.book.put(kept)).toBe('done');
    await redis.kill();
    await waitFor('Redis to be away', () => !store.connected);
    expect(reasonOf(await one.book.put(late))).toBe('disconnected');
    expect(one.heard.ids).toEqual([kept.id]);
    await redis.restart();
    await waitFor('Redis to be back', () => store.connected);
    expect(await one.book.put(late)).toBe('done');
    const { one: other } = await open();
    await waitFor('both', () => other.heard.controls.size === 2);
    expect(other.heard.ids).toEqual([kept.id, late.id].sort());
    expect([one.heard.ids, one.logged]).toEqual([other.heard.ids, []]);
  });

  test('end for all processes if Redis has lost its data', async () => {
    await start();
    const [{ one }, { one: other, store }] = [await open(), await open()];
    await one.book.put(control('a'));
    await waitFor('the other to hear of it', () => other.heard.controls.size === 1);
    await redis.kill();
    await waitFor('Redis to be away', () => !store.connected);
    await redis.restart();
    for (const { heard, lost } of [one, other]) {
      await waitFor('it to end', () => heard.controls.size === 0);
      expect(lost).toEqual([[1, 0]]);
    }
  });

  test.each(['flushall', 'del weir:1:{controls}'])(
    '%s: each process reports the number of lost controls once',
    async (how) => {
      await start();
      const [{ one }, { one: other }] = [await open(), await open()];
      const [blocked, exempted] = [control('a'), control('b', { kind: 'allow' })];
      for (const made of [blocked, control('c'), exempted]) await one.book.put(made);
      await waitFor('the other to hear of all', () => other.heard.controls.size === 3);
      await one.book.end([blocked.id]);
      await waitFor('the other to hear of the end', () => other.heard.controls.size === 2);
      const [name = '', ...args] = how.split(' ');
      await command(name, ...args);
      for (const { heard, lost } of [one, other]) {
        await waitFor('it to be noticed', () => lost.length > 0);
        expect([lost, heard.ids]).toEqual([[[1, 1]], []]);
      }
    },
  );

  test('get few calls while Redis hangs, and report that the result is unknown', async () => {
    await start();
    const { one, store } = await open();
    redis.pause();
    const [made, others] = [control('a'), Array.from({ length: 20 }, (_, i) => control(`t${i}`))];
    const results = await Promise.all([made, ...others].map((each) => one.book.put(each)));
    expect(new Set(results.map(reasonOf))).toEqual(new Set(['timeout']));
    const taken = await store.take([takeItem('a', SLOW)], systemClock.monotonicMicros() + 10_000);
    expect(taken).toBeInstanceOf(StorageError);
    redis.resume();
    await waitFor('its change to be visible', () => one.heard.ids.includes(made.id));
  });

  test('report missing rights once, do not affect takes, and continue with the rights', async () => {
    await start();
    const rights = ['~weir:1:*', '-@all', '+evalsha', '+eval', '+mget', '+set', '+del', '+time'];
    await command('acl', 'setuser', 'weir', 'on', '>pw', ...rights);
    const { one, store } = await open('weir:pw@');
    expect(reasonOf(await one.book.put(control('a')))).toBe('rejected');
    await waitFor('the log', () => one.logged.length > 0);
    expect(one.logged).toEqual([
      expect.stringMatching(/^warn weir cannot read blocks and exemptions from Redis, .*redis\.md/),
    ]);
    expect(await takeFrom(store, takeItem('a', SLOW))).toMatchObject([{ limited: false }]);
    const more = ['+zadd', '+zrem', '+zscore', '+zcard', '+zrangebyscore', '+pttl', '+pexpire'];
    await command('acl', 'setuser', 'weir', ...more);
    await waitFor('the log', () => one.logged.length > 1);
    expect(one.logged[1]).toBe('info weir can read blocks and exemptions from Redis again');
    expect(await one.book.put(control('a'))).toBe('done');
  });

  test('receive the time from weir if Redis hides it from scripts', async () => {
    await start();
    await command('acl', 'setuser', 'weir', 'on', '>pw', '~*', '+@all', '-time');
    const [{ one }, { one: other }] = [await open('weir:pw@'), await open('weir:pw@')];
    const made = control('a');
    expect(await one.book.put(made)).toBe('done');
    const heard = await waitFor('the other to hear of it', () => other.heard.controls.get(made.id));
    expect(heard.expiresAtMicros - systemClock.monotonicMicros()).toBeLessThanOrEqual(made.durationMicros);
  });

  test('refuse changes on a replica, and accept them on the next master', async () => {
    await start();
    const { one, store } = await open();
    const [first, second] = [control('a'), control('b')];
    await one.book.put(first);
    await command('replicaof', '127.0.0.1', '1');
    expect(reasonOf(await one.book.put(second))).toBe('rejected');
    // The store detects the replica without a take.
    await waitFor('the store to be away', () => !store.connected);
    expect(one.heard.ids).toEqual([first.id]);
    await command('replicaof', 'no', 'one');
    await waitFor('the second', async () => (await one.book.put(second)) === 'done');
  });

  test('leave a key with other content alone, and report it in the log', async () => {
    await start();
    await command('set', 'weir:1:{controls}', 'mine');
    const { one } = await open();
    expect(reasonOf(await one.book.put(control('a')))).toBe('rejected');
    await waitFor('the log', () => one.logged.length > 0);
    expect(one.logged[0]).toMatch(/WRONGTYPE/);
    expect(await command('get', 'weir:1:{controls}')).toBe('mine');
  });
});

describe('a deny cache', () => {
  function openWhole(): Store {
    const store = openStoreOf({ REDIS_URL: `127.0.0.1:${redis.port}`, DENY_CACHE_MAX_AGE: '10m' });
    closers.push(() => store.close());
    return store;
  }

  test('forgets within a second a bucket that another process granted tokens to', async () => {
    await start();
    const [one, other] = [openWhole(), openWhole()];
    await waitFor('both to be up', () => one.up() && other.up());
    const isLimited = async (store: Store): Promise<unknown> =>
      (await takeFrom(store.buckets, takeItem('a', SLOW)))[0]?.limited;
    await takeFrom(other.buckets, takeItem('a', SLOW, { hits: 10 }));
    for (const store of [one, other, other]) expect(await isLimited(store)).toBe(true);
    expect(other.denyCacheStats().answers).toBe(1);
    await takeFrom(one.buckets, takeItem('a', SLOW, { hits: 5, refund: true }));
    expect(await one.controls.announceGrants([takeItem('a', SLOW).key])).toBe('done');
    expect(await isLimited(one)).toBe(false);
    await waitFor('the other to forget', async () => (await isLimited(other)) === false);
  });
});
