// Tests that weir refuses a proxy that shards if it is configured as a Redis, because it would allow too many requests.

import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { StoreFault } from '../../../src/limiter/store-fault.js';
import { expectSingleServer } from '../../../src/storage/redis/connection/expect-server.js';
import { parseRedisUrl } from '../../../src/storage/redis/connection/redis-address.js';
import { RespPipe } from '../../../src/storage/redis/connection/resp-pipe.js';
import { REDIS } from '../../support/limiter/store-options.js';
import { waitFor } from '../../support/process/wait-for.js';
import { PROXY_KINDS } from '../../support/redis/proxy-kinds.js';
import { redisCommand } from '../../support/redis/redis-command.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import type { ShardingProxy } from '../../support/redis/sharding-proxy.js';
import { SingleRedisStore } from '../../support/redis/single-stores.js';

let servers: RedisServer[] = [];

beforeAll(async () => {
  servers = await Promise.all([startRedis(), startRedis()]);
});

afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
});

/** Returns the log line and the faults of a store that stays unavailable. */
async function refusal(port: number): Promise<{ sentence: string; faults: readonly StoreFault[] }> {
  const log: string[] = [];
  const faults: StoreFault[] = [];
  const store = new SingleRedisStore({
    ...REDIS,
    address: parseRedisUrl(`127.0.0.1:${port}`),
    log: (_level, message) => log.push(message),
    observeFault: (fault) => faults.push(fault),
  });
  try {
    const sentence = await waitFor('a line in the log', () => log[0]);
    expect([store.everReached, log]).toEqual([false, [sentence]]);
    return { sentence, faults };
  } finally {
    await store.close();
  }
}

/** Sends the commands of a store on a new connection, which makes the proxy connect to its servers. */
async function detectServers(port: number): Promise<void> {
  const stream = connect(port, '127.0.0.1');
  const pipe = new RespPipe(stream, (error) => stream.destroy(error));
  try {
    await expectSingleServer((name, args, bound) => pipe.send(name, args, bound), undefined);
  } finally {
    stream.destroy();
  }
}

for (const kind of PROXY_KINDS) {
  (kind.isInstalled ? describe : describe.skip)(kind.name, () => {
    let proxy: ShardingProxy;
    let proxyOfOne: ShardingProxy;

    beforeAll(async () => {
      const ports = servers.map(({ port }) => port);
      proxy = await kind.start({ servers: ports, honoursHashTags: false });
      proxyOfOne = await kind.start({ servers: ports.slice(0, 1), honoursHashTags: false });
    });

    afterAll(() => Promise.all([proxy.stop(), proxyOfOne.stop()]));

    test('is refused by name, whatever its number of servers', async () => {
      for (const { port } of [proxy, proxyOfOne]) {
        const { sentence } = await refusal(port);
        expect(sentence).toContain(
          `Redis redis://127.0.0.1:${port} cannot be used, and weir keeps retrying: `,
        );
        expect(sentence).toContain(
          "this server distributes keys over several servers, as twemproxy and Envoy's redis_proxy do; " +
            'set REDIS_TYPE=PROXY, or set REDIS_URL to the address of the Redis server (this address ' +
            'belongs to a proxy: ',
        );
      }
    });

    test('is detected by the places of keys, even if it forwards every command', async () => {
      await expect(detectServers(proxy.port)).rejects.toThrow(
        /^this address belongs to a proxy: a script finds only \d+ of 32 keys$/,
      );
      await detectServers(proxyOfOne.port);
      await redisCommand(servers[0] as RedisServer, 'flushall');
    });
  });
}

test('weir accepts a Redis with renamed CLIENT, SCRIPT or INFO', async () => {
  const redis = await startRedis({
    args: ['--rename-command', 'INFO', '', '--rename-command', 'CLIENT', ''],
  });
  const store = new SingleRedisStore({ ...REDIS, address: parseRedisUrl(`127.0.0.1:${redis.port}`) });
  await store.reached;
  await waitFor('the keys of the check to be removed', async () => {
    return (await redisCommand(redis, 'dbsize')) === 0;
  });
  await store.close();
  await redis.stop();
});

test('weir treats a server without all three commands as a proxy', async () => {
  const names = ['INFO', 'CLIENT', 'SCRIPT'];
  const redis = await startRedis({ args: names.flatMap((name) => ['--rename-command', name, '']) });
  const { sentence, faults } = await refusal(redis.port);
  expect(sentence).toContain('it does not forward CLIENT, SCRIPT or INFO (ERR unknown command');
  expect(faults).toContain('proxy');
  await redis.stop();
});
