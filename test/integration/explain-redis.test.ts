/* Tests that weir explain --redis names the server that keeps a bucket, according to the variables of a weir server. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { freePorts } from '../support/process/free-port.js';
import { TempDir } from '../support/process/temp-dir.js';
import { type RedisCluster, startCluster } from '../support/redis/cluster.js';
import { startSentinelSetup } from '../support/redis/sentinels.js';
import { CommandHost } from '../support/weir/commands.js';
import { startWeir } from '../support/weir/weir.js';

const POLICY = `
domain: shop
descriptors:
  - key: tenant
    rate_limit: { unit: hour, requests_per_unit: 10 }
  - key: burst
    rate_limit: { unit: second, requests_per_unit: 10 }
  - { key: free, rate_limit: { unlimited: true } }
`;
const folder = new TempDir();
const policy = folder.write('shop.yaml', POLICY);
let cluster: RedisCluster;
let environment: Record<string, string>;

beforeAll(async () => {
  cluster = await startCluster({ password: 'secret' });
  environment = {
    REDIS_TYPE: 'cluster',
    REDIS_URL: cluster.url,
    REDIS_AUTH: 'secret',
    CACHE_KEY_PREFIX: 'edge:',
  };
});

const host = new CommandHost();
const explain = (environment: Readonly<Record<string, string>>, ...words: readonly string[]) =>
  host.run({ args: ['explain', policy, '--redis', ...words], folder: folder.path, environment });

interface Place {
  readonly redis_key: string;
  readonly redis_slot: number;
  readonly redis_node: string | null;
}
const placeIn = ({ stdout }: { readonly stdout: string }): Place =>
  (JSON.parse(stdout) as { rules: [Place] }).rules[0];

describe('a Redis Cluster', () => {
  test('names the key, the slot and the node that weir serve uses', async () => {
    const weir = await startWeir({ policy: POLICY, env: environment });
    const client = new RlsClient(weir.grpcPort);
    for (const tenant of ['acme', 'globex', 'initech', 'umbrella']) {
      await client.ask('shop', [descriptor([`tenant=${tenant}`])]);
      const result = await explain(environment, '--json', `tenant=${tenant}`);
      expect([result.code, result.stderr]).toEqual([0, '']);
      const { redis_key: key, redis_slot: slot, redis_node: name } = placeIn(result);
      expect(key).toMatch(/^edge:weir:1:\{/);
      expect(slot).toBe(await cluster.slotOf(key));
      const node = await cluster.masterOf(slot);
      expect(name).toBe(node.address);
      expect(await node.command('EXISTS', key)).toBe(1);
    }
  });

  test('prints text with a password in a file, and no place for requests without a limit', async () => {
    const { REDIS_AUTH: _, ...others } = environment;
    const env = { ...others, REDIS_AUTH_FILE: folder.write('password', 'secret') };
    const { code, stdout } = await explain(env, 'tenant=acme');
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^Redis key: {2}edge:weir:1:.*\nslot: {7}\d+ of a Redis Cluster\nnode: {7}127\.0\.0\.1:\d+$/m,
    );
    expect(placeIn(await explain(env, '--json', 'free=x'))).toMatchObject({
      ...{ redis_key: null, redis_slot: null, redis_node: null },
    });
  });

  test('reports a wrong or missing password in one sentence, and still explains the rest', async () => {
    const wrong = await explain({ ...environment, REDIS_AUTH: 'wrong' }, 'tenant=acme');
    expect(wrong).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^slot: .*\noverrides:/m),
      stderr: expect.stringMatching(
        /^weir explain: Redis cluster 127.* it refuses the login; check REDIS_AUTH.*\(WRONGPASS .*\)\n$/,
      ),
    });
    const { REDIS_AUTH: _, ...without } = environment;
    expect((await explain(without, '--json', 'tenant=acme')).stderr).toMatch(
      /^weir explain: Redis cluster 127.* it refuses the login; check REDIS_AUTH.*\(NOAUTH .*\)\n$/,
    );
  });

  test('reports nodes that are unavailable or silent', async () => {
    const [port] = await freePorts(1);
    const away = await explain({ ...environment, REDIS_URL: `127.0.0.1:${port}` }, '--json', 'tenant=acme');
    expect([away.code, placeIn(away).redis_node]).toEqual([1, null]);
    expect(away.stderr).toMatch(
      /^weir explain: Redis cluster .* cannot be used: .* or correct REDIS_URL \(no node .* answers: .*\)\n$/,
    );
    for (const node of cluster.nodes) node.pause();
    try {
      const { code, stderr } = await explain(environment, 'tenant=acme');
      expect(code).toBe(1);
      expect(stderr).toMatch(/no node of the Redis Cluster answers/);
    } finally {
      for (const node of cluster.nodes) node.resume();
    }
  });

  test('reports a slot that no node serves', async () => {
    const { redis_slot: slot } = placeIn(await explain(environment, '--json', 'tenant=acme'));
    const owner = await cluster.masterOf(slot);
    for (const node of cluster.nodes) await node.command('CLUSTER', 'DELSLOTS', slot).catch(() => {});
    try {
      expect(await explain(environment, 'tenant=acme')).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(
          `check the masters and slots of the Redis Cluster (no node of the Redis Cluster serves slot ${slot})`,
        ),
      });
    } finally {
      await owner.command('CLUSTER', 'ADDSLOTS', slot);
      await cluster.waitStable();
    }
  });

  test('windows of a second are in the second Redis; a single Redis is not contacted', async () => {
    const env = { ...environment, REDIS_PERSECOND: 'true', REDIS_PERSECOND_URL: '127.0.0.1:1' };
    expect(placeIn(await explain(env, '--json', 'burst=x')).redis_node).toBe('redis://127.0.0.1:1');
    expect(placeIn(await explain(env, '--json', 'tenant=acme')).redis_node).toMatch(/^127\.0\.0\.1:\d+$/);
  });
});

test('with Sentinels, names the master that they announce', async () => {
  const setup = await startSentinelSetup();
  const result = await explain({ REDIS_TYPE: 'SENTINEL', REDIS_URL: setup.url }, '--json', 'tenant=acme');
  const name = `redis://127.0.0.1:${await setup.masterPort()} (master mymaster)`;
  expect([result.code, placeIn(result).redis_node]).toEqual([0, name]);
});

test.each<[Record<string, string>, RegExp]>([
  [
    {},
    /^weir explain: REDIS_URL is not set, so a server with these variables keeps its buckets in memory; .*\n$/,
  ],
  [
    { REDIS_URL: 'a,b' },
    /^weir explain: REDIS_URL: Redis address: the value contains several addresses; .*\n$/,
  ],
  [
    { REDIS_URL: 'a', REDIS_TLS_CACERT: '/none', REDIS_TLS: 'true' },
    /^weir explain: REDIS_TLS_CACERT: .*\n$/,
  ],
])('rejects variables that name no Redis: %j', async (env, stderr) => {
  expect(await explain(env, 'tenant=acme')).toMatchObject({ code: 1, stderr: expect.stringMatching(stderr) });
});
