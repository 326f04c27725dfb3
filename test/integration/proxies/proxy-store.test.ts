// Tests a store behind real proxies: whether it detects support for hash tags, and how it handles a failed server.

import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { StorageError, type TakeItem } from '../../../src/limiter/bucket-store.js';
import type { StoreFault } from '../../../src/limiter/store-fault.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { parseRedisUrl } from '../../../src/storage/redis/connection/redis-address.js';
import type { ProxyStoreOptions } from '../../../src/storage/redis/proxy/proxy-store.js';
import { REDIS } from '../../support/limiter/store-options.js';
import { HUNDRED, takeItem } from '../../support/limiter/take-items.js';
import { takeFrom } from '../../support/limiter/test-stores.js';
import { optionalToolPath } from '../../support/process/tools.js';
import { waitFor } from '../../support/process/wait-for.js';
import { PROXY_KINDS } from '../../support/redis/proxy-kinds.js';
import { redisCommand } from '../../support/redis/redis-command.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import type { ShardingProxy } from '../../support/redis/sharding-proxy.js';
import { SingleProxyStore } from '../../support/redis/single-stores.js';
import { startTwemproxy } from '../../support/redis/twemproxy.js';

// Redis and proxies can be slow to start on a busy machine.
jest.setTimeout(60_000);

/** Refills too slowly to matter. */
const FIVE = tokenBucketRate(5, 1, 86_400_000_000);
const TENANTS = Array.from({ length: 24 }, (_, i) => `tenant number ${i} of many ${i}`);

let servers: RedisServer[] = [];
let proxy: ShardingProxy | undefined;
let stores: SingleProxyStore[] = [];
let log: string[] = [];
let faults: StoreFault[] = [];

beforeEach(async () => {
  log = [];
  faults = [];
  servers = await Promise.all([startRedis(), startRedis()]);
});

afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  stores = [];
  await proxy?.stop();
  await Promise.all(servers.map((server) => server.stop()));
});

const ports = (): number[] => servers.map(({ port }) => port);

function open(options: Partial<ProxyStoreOptions> = {}): SingleProxyStore {
  const address = { ...parseRedisUrl(`127.0.0.1:${proxy?.port}`), proxy: true };
  const store = new SingleProxyStore({
    ...{ ...REDIS, address, ...options },
    log: (level, message) => log.push(`${level}: ${message}`),
    observeFault: (fault) => faults.push(fault),
  });
  stores.push(store);
  return store;
}

/** Returns takes of one tenant, each from a separate bucket. */
function bucketsOf(tenant: string, count: number): TakeItem[] {
  return Array.from({ length: count }, (_, i) => ({
    ...takeItem(`${tenant}, bucket ${i} with a name ${i}`, FIVE),
    tagLength: tenant.length,
  }));
}

/** Returns the keys of buckets on each server. */
const keysOn = (): Promise<string[][]> =>
  Promise.all(
    servers.map(async (server) => {
      const keys = (await redisCommand(server, 'keys', '*')) as string[];
      return keys.filter((key) => key.includes('tenant'));
    }),
  );

const isDecided = async (store: SingleProxyStore, tenant: string): Promise<boolean> =>
  !((await store.take([takeItem(tenant, HUNDRED)], Infinity)) instanceof StorageError);

for (const kind of PROXY_KINDS) {
  (kind.isInstalled ? describe : describe.skip)(kind.name, () => {
    test.each([
      [true, 1, /^info: Redis \S+ supports hash tags/],
      [false, 4, /^warn: Redis \S+ does not support hash tags, so each bucket needs its own call/],
    ])('detects whether the proxy supports hash tags: %s', async (honoursHashTags, calls, sentence) => {
      proxy = await kind.start({ servers: ports(), honoursHashTags });
      const faster = open();
      await faster.reached;
      const counts = async (): Promise<number> => {
        const texts = await Promise.all(
          servers.map((server) => redisCommand(server, 'info', 'commandstats')),
        );
        return texts.reduce<number>((sum, text) => {
          return sum + Number(/cmdstat_evalsha:calls=(\d+)/.exec(String(text))?.[1] ?? 0);
        }, 0);
      };
      // This makes every server load the script.
      for (const tenant of TENANTS) await takeFrom(faster, takeItem(tenant, HUNDRED));
      const before = await counts();
      const outcomes = await takeFrom(faster, ...bucketsOf('a tenant', 4));
      expect(outcomes.map(({ remaining }) => remaining)).toEqual([4, 4, 4, 4]);
      expect((await counts()) - before).toBe(calls);
      expect(log.filter((line) => sentence.test(line))).toHaveLength(1);
      expect(log).toHaveLength(2);
    });

    test('puts every bucket in the same place, whatever else is in a call', async () => {
      proxy = await kind.start({ servers: ports(), honoursHashTags: false });
      const [one, other] = [open(), open()];
      await Promise.all([one.reached, other.reached]);
      const asked = TENANTS.map((tenant) => bucketsOf(tenant, 2));
      // Five tokens of each bucket are allowed, of ten that are requested in ten orders.
      const passed = new Map<string, number>();
      for (let round = 0; round < 10; round++) {
        const store = round % 2 === 0 ? one : other;
        const order = round % 3 === 0 ? [...asked].reverse() : asked;
        await Promise.all(
          order.map(async (items) => {
            // The order of the items in a call must not matter.
            const outcomes = await takeFrom(store, ...(round % 4 < 2 ? items : [...items].reverse()));
            const [{ key } = { key: '' }] = items;
            if (outcomes.every(({ limited }) => !limited)) passed.set(key, (passed.get(key) ?? 0) + 1);
          }),
        );
      }
      expect([...passed.values()]).toEqual(TENANTS.map(() => 5));
      const keys = await keysOn();
      expect(keys.every((found) => found.length > 0)).toBe(true);
      expect(new Set(keys.flat()).size).toBe(keys.flat().length);
    });

    test('serves the tenants of available servers without a pause while one is dead', async () => {
      proxy = await kind.start({ servers: ports(), honoursHashTags: true });
      const store = open({ checkIntervalMs: 200 });
      await store.reached;
      expect(store.isComplete).toBe(true);
      const decided = async (): Promise<string[]> => {
        const answers = await Promise.all(
          TENANTS.map(async (tenant) => ((await isDecided(store, tenant)) ? tenant : '')),
        );
        return answers.filter((tenant) => tenant !== '');
      };
      expect(await decided()).toEqual(TENANTS);
      const [dead] = servers as [RedisServer];
      await dead.kill();
      await waitFor('the proxy to know', async () => (await decided()).length < TENANTS.length);
      const living = await decided();
      expect(living.length).toBeGreaterThan(0);
      const lost = TENANTS.filter((tenant) => !living.includes(tenant));
      // Calls to the dead server must not affect other calls.
      for (let round = 0; round < 50; round++) {
        for (const tenant of lost) void store.take([takeItem(tenant, HUNDRED)], Infinity);
        expect(await isDecided(store, living[round % living.length] as string)).toBe(true);
      }
      expect([store.connected, store.isComplete]).toEqual([true, false]);
      expect(faults).toContain('upstream');
      expect(log.filter((line) => line.startsWith('error'))).toEqual([]);
      await dead.restart();
      await waitFor('all to be decided', async () => (await decided()).length === TENANTS.length);
      await waitFor('the store to know', () => store.isComplete);
    });

    test('starts while a server is dead, sends one key per call, and probes again', async () => {
      proxy = await kind.start({ servers: ports(), honoursHashTags: true });
      const [dead] = servers as [RedisServer];
      await dead.kill();
      const store = open({ checkIntervalMs: 50 });
      await store.reached;
      expect(store.hashTags).toBe('unknown');
      expect(log[0]).toMatch(
        /^warn: weir cannot detect whether Redis \S+ supports hash tags, .*until all servers behind/,
      );
      await dead.restart();
      await waitFor('hash tags to be found', () => store.hashTags === 'honoured');
    });

    test("uses the machine's clock with REDIS_CLOCK=caller, because a proxy has no time", async () => {
      proxy = await kind.start({ servers: ports(), honoursHashTags: true });
      const store = open({ clockOf: 'caller' });
      await store.reached;
      for (const tenant of TENANTS) expect(await isDecided(store, tenant)).toBe(true);
      expect(store.connections.opened).toBe(1);
      expect(log.filter((line) => line.includes("uses this machine's clock"))).toHaveLength(1);
    });

    test('recovers when the proxy does', async () => {
      proxy = await kind.start({ servers: ports(), honoursHashTags: true });
      const store = open();
      await store.reached;
      await takeFrom(store, ...bucketsOf('a tenant', 2));
      await proxy.kill();
      await waitFor('the store to notice', () => !store.connected);
      await proxy.restart();
      await waitFor('the store to be back', () => store.connected);
      const outcomes = await takeFrom(store, ...bucketsOf('a tenant', 2));
      expect(outcomes.map(({ remaining }) => remaining)).toEqual([3, 3]);
    });

    test('reports that no server is up when all servers are dead', async () => {
      proxy = await kind.start({ servers: ports(), honoursHashTags: true });
      const store = open();
      await store.reached;
      await Promise.all(servers.map((server) => server.kill()));
      await waitFor('the store to notice', async () => {
        await Promise.all(TENANTS.map((tenant) => isDecided(store, tenant)));
        return !store.connected;
      });
      expect(log.at(-1)).toMatch(/the proxy cannot reach one of its Redis servers; restart the Redis/);
      await Promise.all(servers.map((server) => server.restart()));
      await waitFor('the store to be back', () => store.connected);
    });
  });
}

describe('redis_proxy', () => {
  test('gets one key per call once it spreads keys that were together', async () => {
    const kind = PROXY_KINDS[1];
    // On a single server, all keys are together.
    proxy = await kind?.start({ servers: ports().slice(0, 1), honoursHashTags: false });
    const store = open({ checkIntervalMs: 50 });
    await store.reached;
    expect(store.hashTags).toBe('honoured');
    await proxy?.setServers?.(ports());
    await waitFor('that to be found', () => store.hashTags === 'ignored');
    expect(store.connections.opened).toBe(1);
    expect(log.at(-1)).toMatch(/^warn: Redis \S+ does not support hash tags/);
  });
});

const hasTwemproxy = optionalToolPath('nutcracker') !== undefined;
(hasTwemproxy ? test : test.skip)(
  'tokens that a hanging server takes later do not count as given back',
  async () => {
    proxy = await startTwemproxy({ servers: ports(), honoursHashTags: true, lines: ['timeout: 200'] });
    const store = open();
    await store.reached;
    const item = takeItem('hanging', FIVE, { hits: 3 });
    await takeFrom(store, item);
    for (const server of servers) server.pause();
    const result = await store.take([{ ...item, refund: true }], Infinity);
    for (const server of servers) server.resume();
    expect(result).toMatchObject({
      reason: expect.stringMatching(/^(timeout|disconnected)$/),
      unsent: false,
    });
    await waitFor('the refund', async () => {
      const look = await store.take([takeItem('hanging', FIVE, { hits: 0 })], Infinity);
      return !(look instanceof StorageError) && look[0]?.remaining === 5;
    });
  },
);
