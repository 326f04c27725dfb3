/* Tests connections to Sentinels: what the log and the console show, and how often weir connects. */

import type { Socket } from 'node:net';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { mainRedis } from '../../src/server/settings/redis-settings.js';
import { waitFor } from '../support/process/wait-for.js';
import { type PausableProxy, startPausableProxy } from '../support/redis/pausable-proxy.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startSentinel } from '../support/redis/sentinels.js';
import { SingleRedisStore } from '../support/redis/single-stores.js';
import { testOnlyWith } from '../support/redis/test-only-with.js';
import { settingsOf } from '../support/weir/settings.js';

let redis: RedisServer;
let log: string[];
const closers: (() => Promise<void>)[] = [];
beforeEach(async () => {
  log = [];
  redis = await startRedis();
  closers.push(() => redis.stop());
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function sentinel(lines: readonly string[] = []): Promise<RedisServer> {
  const started = await startSentinel({ masterName: 'mymaster', masterPort: redis.port, quorum: 1, lines });
  closers.push(() => started.stop());
  return started;
}

function open(sentinelPort: number, environment: Record<string, string> = {}): SingleRedisStore {
  const settings = settingsOf({
    REDIS_TYPE: 'SENTINEL',
    REDIS_URL: `mymaster,127.0.0.1:${sentinelPort}`,
    ...environment,
  });
  const store = new SingleRedisStore({
    ...mainRedis(settings)!,
    log: (level, message) => log.push(`${level}: ${message}`),
  });
  closers.push(() => store.close());
  return store;
}

/** Opens a proxy to a Sentinel; `onListener` is called with each connection that subscribes to announcements. */
async function openSentinelProxy(port: number, onListener: (client: Socket) => void): Promise<PausableProxy> {
  const proxy = await startPausableProxy(port, (client, chunk) => {
    client.write(chunk);
    if (chunk.includes('subscribe')) onListener(client);
  });
  closers.push(() => proxy.close());
  return proxy;
}

testOnlyWith(
  'own',
  'ioredis warns on the console',
  'a password that Sentinels do not require is ignored, and nothing is written to the console',
  async () => {
    const console = jest.spyOn(globalThis.console, 'warn').mockImplementation(() => {});
    try {
      const store = open((await sentinel()).port, { REDIS_SENTINEL_AUTH: 'hunter2' });
      await store.reached;
      expect(console).not.toHaveBeenCalled();
      expect(log).toEqual([expect.stringMatching(/is up$/)]);
    } finally {
      console.mockRestore();
    }
  },
);

test('the log does not show the password that a Sentinel without AUTH repeats', async () => {
  const { port } = await sentinel(['rename-command AUTH ANOTHER']);
  open(port, { REDIS_SENTINEL_AUTH: 'hunter2' });
  await waitFor('the log', () => log.length > 0);
  expect(log).toEqual([expect.stringMatching(/ REDIS_SENTINEL_AUTH \(.*ERR unknown command 'AUTH'\)$/i)]);
});

testOnlyWith(
  'own',
  'a Sentinel is trusted',
  'a burst of announcements causes one query, however long it is',
  async () => {
    const announced = 'mymaster 127.0.0.1 1 127.0.0.1 2';
    const message = `*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$${announced.length}\r\n${announced}\r\n`;
    let announcements = 0;
    const way = await openSentinelProxy((await sentinel()).port, (client) => {
      const announce = (): void => {
        if (announcements >= 500 || client.destroyed) return;
        announcements++;
        client.write(message, () => setTimeout(announce));
      };
      announce();
    });
    const store = open(way.port);
    await store.reached;
    await waitFor('the announcements', () => announcements === 500);
    expect(way.accepted).toBeLessThan(100);
  },
);

testOnlyWith(
  'own',
  'ioredis reconnects after fixed pauses',
  'a Sentinel that closes subscriptions gets new ones after growing pauses',
  async () => {
    let cuts = 0;
    const way = await openSentinelProxy((await sentinel()).port, (client) => {
      cuts++;
      client.destroy();
    });
    const timers = jest.spyOn(globalThis, 'setTimeout');
    const store = open(way.port);
    await store.reached;
    await waitFor('the cuts', () => cuts === 5);
    const waits = timers.mock.calls.map(([, ms]) => ms);
    timers.mockRestore();
    // The first pause, of 100 ms, is as long as other waits.
    expect(waits.filter((ms) => [200, 400, 800].includes(ms as number))).toEqual([200, 400, 800]);
  },
);
