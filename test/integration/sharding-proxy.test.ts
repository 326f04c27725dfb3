/* Tests that weir does not start behind a sharding proxy, because several servers would count the same bucket. */
import { beforeAll, expect, test } from '@jest/globals';
import type { StoreFault } from '../../src/limiter/failure-policy.js';
import { parseRedisUrl } from '../../src/storage/redis/connection/redis-address.js';
import { REDIS } from '../support/limiter/store-options.js';
import { freePorts } from '../support/process/free-port.js';
import { optionalToolPath } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';
import { redisCommand } from '../support/redis/redis-command.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { SingleRedisStore } from '../support/redis/single-stores.js';
import { startTwemproxy } from '../support/redis/twemproxy.js';
import { CommandHost } from '../support/weir/commands.js';

// With four servers, all keys of a check are on one server in one of 16,384 runs.
const SERVERS = 4;
const SENTENCE = new RegExp(
  'cannot be used: this server distributes keys over several Redis servers, .*; set REDIS_URL to the address ' +
    'of a single Redis server, or use Redis Cluster or Sentinel \\(this address belongs to a proxy: scripts ' +
    'with 8 keys ran on [234] servers\\)',
);

let host: CommandHost;
let servers: RedisServer[] = [];

beforeAll(async () => {
  host = new CommandHost();
  servers = await Promise.all(Array.from({ length: SERVERS }, () => startRedis()));
});

const ports = (): number[] => servers.map(({ port }) => port);

async function serve(port: number, workers: string): Promise<{ code: unknown; stderr: string }> {
  const [grpc, http, debug] = await freePorts(3);
  const environment = {
    GRPC_HOST: '127.0.0.1',
    GRPC_PORT: String(grpc),
    HOST: '127.0.0.1',
    PORT: String(http),
    DEBUG_PORT: String(debug),
    REDIS_URL: `127.0.0.1:${port}`,
    WORKERS: workers,
  };
  return host.run({ args: ['serve'], folder: '/', environment });
}

(optionalToolPath('nutcracker') === undefined ? test.skip : test)(
  'twemproxy ends the start, even if it is reached later',
  async () => {
    for (const workers of ['1', '2']) {
      const proxy = await startTwemproxy(ports());
      const { code, stderr } = await serve(proxy.port, workers);
      expect([code, stderr]).toEqual([1, expect.stringMatching(SENTENCE)]);
      await proxy.stop();
    }
    const [port = 0] = await freePorts(1);
    const ended = serve(port, '1');
    await new Promise((resolve) => setTimeout(resolve, 2000));
    const proxy = await startTwemproxy(ports(), port);
    expect(await ended).toMatchObject({ code: 1, stderr: expect.stringMatching(SENTENCE) });
    await proxy.stop();
    // No bucket was written.
    for (const server of servers) expect(await redisCommand(server, 'dbsize')).toBe(0);
  },
);

test.each(['INFO', 'CLIENT', 'SCRIPT'])('a Redis without the command %s is accepted', async (command) => {
  const redis = await startRedis({ args: ['--rename-command', command, ''] });
  const faults: StoreFault[] = [];
  const store = new SingleRedisStore({
    ...REDIS,
    address: parseRedisUrl(`127.0.0.1:${redis.port}`),
    observeFault: (fault) => faults.push(fault),
  });
  await store.reached;
  expect(faults).toEqual([]);
  await waitFor('the keys of the probe to expire', async () => (await redisCommand(redis, 'dbsize')) === 0);
});
