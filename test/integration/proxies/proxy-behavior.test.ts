// Tests how proxies that shard handle the commands of weir. The code in src/storage/redis/proxy depends on this
// behaviour, and this test detects versions that behave differently.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { waitFor } from '../../support/process/wait-for.js';
import { PROXY_KINDS } from '../../support/redis/proxy-kinds.js';
import { redisCommand } from '../../support/redis/redis-command.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import type { ShardingProxy } from '../../support/redis/sharding-proxy.js';

/** Keys that differ in all characters that the hash of twemproxy uses; it hardly uses the last two. */
const KEYS = ['ann', 'ben', 'carl', 'dora', 'emil', 'fritz', 'gus', 'hal', 'ida', 'jo', 'kim', 'leo'].map(
  (name) => `${name}-of-weir-${name}`,
);

let servers: RedisServer[] = [];

beforeAll(async () => {
  servers = await Promise.all([startRedis(), startRedis()]);
});

afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
});

/** Returns the reply of a proxy, or `closed` if it closes the connection. */
async function answer(
  proxy: ShardingProxy,
  ...[name, ...args]: readonly [string, ...string[]]
): Promise<unknown> {
  try {
    return await redisCommand(proxy, name, ...args);
  } catch (error) {
    const { message } = error as Error;
    return /closed/i.test(message) ? 'closed' : message;
  }
}

for (const kind of PROXY_KINDS) {
  (kind.isInstalled ? describe : describe.skip)(kind.name, () => {
    let proxy: ShardingProxy;

    beforeAll(async () => {
      proxy = await kind.start({ servers: servers.map(({ port }) => port), honoursHashTags: false });
    });

    afterAll(() => proxy.stop());

    test('forwards the commands that weir uses', async () => {
      expect(await answer(proxy, 'set', 'a', '1', 'PX', '1000')).toBe('OK');
      expect(await answer(proxy, 'evalsha', 'f'.repeat(40), '1', 'a')).toMatch(/^NOSCRIPT /);
      const script = `return tonumber(ARGV[1]) --${'x'.repeat(16_000)}`;
      expect(await answer(proxy, 'eval', script, '1', 'a', '7')).toBe(7);
      expect(await answer(proxy, 'eval', 'return #KEYS', '1000', ...manyKeys(1000))).toBe(1000);
    });

    test('sends a script with keys of several servers to the server of the first key, unchecked', async () => {
      // Another proxy can have put the keys elsewhere.
      for (const server of servers) await redisCommand(server, 'flushall');
      for (const key of KEYS) await answer(proxy, 'set', key, '1');
      const script = 'local n = 0; for _, k in ipairs(KEYS) do n = n + redis.call("EXISTS", k) end; return n';
      const found = Number(await answer(proxy, 'eval', script, String(KEYS.length), ...KEYS));
      expect(found).toBeGreaterThan(0);
      expect(found).toBeLessThan(KEYS.length);
    });

    test('loads scripts separately for each server', async () => {
      const script = `return "${kind.name}"`;
      const [first] = servers as [RedisServer];
      const sha1 = String(await redisCommand(first, 'script', 'load', script));
      for (const server of servers) await redisCommand(server, 'script', 'flush');
      await answer(proxy, 'eval', script, '1', KEYS[0] as string);
      await answer(proxy, 'eval', script, '1', KEYS[0] as string);
      const answers = new Set<unknown>();
      for (const key of KEYS) answers.add(await answer(proxy, 'evalsha', sha1, '1', key));
      expect(answers.size).toBe(2);
    });

    test('reports immediately that a dead server is unavailable, and forwards calls to the others', async () => {
      await servers[0]?.kill();
      const answers = await Promise.all(KEYS.map((key) => answer(proxy, 'get', key)));
      await servers[0]?.restart();
      expect(answers).toContain('1');
      expect(answers).toContain(kind.name === 'twemproxy' ? 'ERR Connection refused' : 'upstream failure');
      await waitFor('the server to be asked again', async () => {
        const values = await Promise.all(KEYS.map((key) => answer(proxy, 'get', key)));
        return values.every((value) => value === null || value === '1');
      });
    });
  });
}

(PROXY_KINDS[0]?.isInstalled ? describe : describe.skip)('twemproxy', () => {
  test('closes the connection for commands without a key', async () => {
    const proxy = await PROXY_KINDS[0]?.start({
      servers: servers.map(({ port }) => port),
      honoursHashTags: false,
    });
    if (proxy === undefined) throw new Error('no twemproxy');
    for (const command of [
      ['client', 'SETNAME', 'weir'],
      ['select', '0'],
      ['info', 'server'],
      ['script', 'LOAD', 'return 1'],
      ['hello', '3'],
      ['acl', 'WHOAMI'],
    ] as [string, string][])
      expect([command, await answer(proxy, ...command)]).toEqual([command, 'closed']);
    await proxy.stop();
  });
});

describe('redis_proxy', () => {
  test('answers commands without a key itself, with a TIME that no Redis would return', async () => {
    const proxy = await PROXY_KINDS[1]?.start({
      servers: servers.map(({ port }) => port),
      honoursHashTags: false,
    });
    if (proxy === undefined) throw new Error('no Envoy');
    expect(await answer(proxy, 'client', 'SETNAME', 'weir')).toBe('OK');
    expect(await answer(proxy, 'script', 'LOAD', 'return 1')).toHaveLength(40);
    expect(await answer(proxy, 'info', 'replication')).toBe('');
    const [, micros] = (await answer(proxy, 'time')) as [string, string];
    expect(Number(micros)).toBeGreaterThan(1e6);
    await proxy.stop();
  });
});

function manyKeys(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `key ${i}`);
}
