/* Tests a weir process with two workers on a real Redis Cluster: the answers to clients, and the views of operators. */
import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { TopAnswer } from '../../../src/admin/buckets/messages.js';
import { CODE, type Descriptor } from '../../../src/codec/messages.js';
import { entriesOf } from '../../support/buckets/admin-bench.js';
import { RlsClient } from '../../support/grpc/rls-client.js';
import { descriptor } from '../../support/policy/decider.js';
import { httpRequest } from '../../support/process/http-client.js';
import { waitFor } from '../../support/process/wait-for.js';
import { type RedisCluster, startCluster } from '../../support/redis/cluster.js';
import type { ClusterNode } from '../../support/redis/cluster-node.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import { askBuckets } from '../../support/weir/buckets.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';
import { metric, untilAllServe } from '../../support/weir/workers.js';

const POLICY = `
domain: d
descriptors:
  - key: tenant
    rate_limit: { on_store_failure: { local: 0.5 }, token_bucket: { max_tokens: 40, fill_interval: 1000h } }
  - { key: strict, rate_limit: { token_bucket: { max_tokens: 5, fill_interval: 1000h } } }
  - { key: second, rate_limit: { unit: second, requests_per_unit: 1000 } }
`;
/** Returns enough tenants that each of three masters has some. */
const tenants = (name: string) => Array.from({ length: 24 }, (_, i) => `tenant=${name}${i}`);
const TENANTS = tenants('t');
/** Tenants of the test with a dead shard. */
const SHARDED = tenants('sharded');
const OTHERS = tenants('other');

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterEach(async () => {
  for (const node of cluster.nodes) {
    if (!node.isRunning) node.resume();
    await node.command('FLUSHALL');
  }
});

/** Returns the settings of a server on the cluster. */
const onCluster = () => ({ REDIS_TYPE: 'cluster', REDIS_URL: cluster.url, REDIS_TIMEOUT: '1s' });

async function start(
  env: Record<string, string>,
  untilHealthy = true,
): Promise<{ server: WeirServer; client: RlsClient }> {
  const server = await startWeir({
    policy: POLICY,
    untilHealthy,
    env: { ...onCluster(), ...env },
  });
  const client = new RlsClient(server.grpcPort);
  return { server, client };
}

/** Returns the remaining hits of each limit, or a string if there was no answer. */
async function left(client: RlsClient, hitsAddend: number, ...texts: readonly string[]): Promise<unknown[]> {
  const descriptors: readonly Descriptor[] = texts.map((text) => descriptor([text]));
  const { response, details } = await client.ask('d', descriptors, { timeoutMs: 5000, hitsAddend });
  return response?.statuses.map(({ limitRemaining }) => limitRemaining) ?? [details];
}
const remainingOfEach = (client: RlsClient, of = TENANTS): Promise<unknown[]> =>
  Promise.all(of.map(async (tenant) => (await left(client, 1, tenant))[0]));

interface NodeDetail {
  readonly redis: string;
  readonly name: string;
  readonly up: boolean;
}
/** Returns the nodes as one process sees them, or each worker. */
async function nodesOf(server: WeirServer): Promise<readonly NodeDetail[]> {
  const { status, body } = await httpRequest(server.httpPort, '/healthcheck?detail');
  expect(status).toBe(200);
  const { redis, workers } = JSON.parse(body) as {
    readonly redis?: readonly NodeDetail[];
    readonly workers?: readonly { readonly redis: readonly NodeDetail[] }[];
  };
  return redis ?? workers?.flatMap((worker) => worker.redis) ?? [];
}

describe('two workers', () => {
  let server: WeirServer;
  let client: RlsClient;
  beforeAll(async () => {
    server = await startWeir({ policy: POLICY, env: { ...onCluster(), WORKERS: '2' } });
    client = new RlsClient(server.grpcPort);
    await untilAllServe(server);
  });
  beforeEach(() =>
    waitFor('all nodes to be up', async () => {
      const nodes = await nodesOf(server);
      return nodes.length === 6 && nodes.every(({ up }) => up);
    }),
  );

  test('operators view and change the buckets of every node, through either worker', async () => {
    for (const tenant of TENANTS) expect(await left(client, 10, tenant)).toEqual([30]);
    for (const tenant of TENANTS) {
      const entries = entriesOf(tenant);
      const [shown] = (await askBuckets(server, { action: 'show', entries })).buckets;
      expect(shown).toMatchObject({ now: { left: 30 }, redis_slot: expect.any(Number) });
      const [granted] = (await askBuckets(server, { action: 'grant', entries, tokens: 20 })).buckets;
      expect(granted).toMatchObject({ before: { left: 30 }, now: { left: 40 } });
    }
    expect(await remainingOfEach(client)).toEqual(TENANTS.map(() => 39));
  });

  test('tenants of a dead shard are decided locally, and others are not affected', async () => {
    for (const tenant of SHARDED) expect(await left(client, 10, tenant)).toEqual([30]);
    const top = await httpRequest(server.debugPort, '/top', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"by":"used","limit":100}',
    });
    const shown = (JSON.parse(top.body) as TopAnswer).top
      .filter(({ entries }) => entries.some(({ value }) => value?.startsWith('sharded')))
      .map(({ used, used_ratio }) => [used, used_ratio]);
    expect(shown).toEqual(SHARDED.map(() => [10, 0.25]));
    const [dead, ...others] = cluster.nodes as [ClusterNode, ClusterNode, ClusterNode];
    dead.pause();
    const up = (node: ClusterNode): Promise<number> =>
      metric(server, `weir_redis_node_up{redis="main",node="${node.address}"}`);
    await waitFor('the loss', async () => {
      // A worker that sends no calls to the shard detects its failure later.
      await Promise.all(OTHERS.map((tenant) => left(client, 1, tenant)));
      return (await up(dead)) === 0;
    });
    expect(await nodesOf(server)).toContainEqual({ redis: 'main', name: dead.address, up: false });
    expect(await Promise.all(others.map(up))).toEqual([1, 1]);
    const remaining = await remainingOfEach(client, SHARDED);
    const isLocal = remaining.map((count) => count !== 29);
    expect(isLocal.filter(Boolean).length).toBeGreaterThan(0);
    expect(isLocal.filter((is) => !is).length).toBeGreaterThan(0);
    const lines = server.log().filter(({ msg }) => String(msg).includes(dead.address));
    expect(lines.some(({ msg }) => /cannot be used.*no answer/.test(String(msg)))).toBe(true);
    dead.resume();
    await waitFor('the shard', async () => (await up(dead)) === 1);
    // The shard does not know of the hits that were allowed without it, but may have decided a call too late.
    (await remainingOfEach(client, SHARDED)).forEach((count, i) => {
      expect(isLocal[i] ? [28, 29] : [28]).toContain(count);
    });
    await cluster.waitStable();
  });

  test('a denied request over several slots gives back tokens, and its denial is cached', async () => {
    expect(await left(client, 5, 'strict=s')).toEqual([0]);
    const giveBacks = (): Promise<number> => metric(server, 'weir_redis_give_backs_total{result="made"}');
    const made = await giveBacks();
    for (let i = 0; i < 3; i++) {
      const { response } = await client.ask('d', [
        ...TENANTS.map((tenant) => descriptor([tenant])),
        descriptor(['strict=s']),
      ]);
      expect(response?.overallCode).toBe(CODE.OVER_LIMIT);
    }
    await waitFor('the end of giving back', async () => (await giveBacks()) === made + 3);
    // On a busy machine, Redis may answer too late.
    const looks = TENANTS.map((tenant) => descriptor([tenant], { hitsAddend: 0 }));
    await waitFor('full buckets', async () => {
      const { response } = await client.ask('d', looks, { timeoutMs: 5000 });
      return response?.statuses.every(({ limitRemaining }) => limitRemaining === 40);
    });
    const cached = () => metric(server, 'weir_deny_cache_answers_total');
    const before = await cached();
    await waitFor('a denial from the cache', async () => {
      await left(client, 1, 'strict=s');
      return (await cached()) > before;
    });
  });
});

describe('a second Redis', () => {
  const ask = (client: RlsClient): Promise<unknown[]> =>
    left(client, 1, TENANTS[0] as string, 'second=s', TENANTS[1] as string);
  /** Returns how many buckets the cluster keeps, without those of probes. */
  const buckets = async (): Promise<number> => {
    const keys = await Promise.all(cluster.nodes.map((node) => node.command('KEYS', '*')));
    return (keys.flat() as string[]).filter((key) => !key.endsWith('probe')).length;
  };

  test('a cluster next to a single Redis', async () => {
    const single: RedisServer = await startRedis();
    const { server, client } = await start({
      ...{ REDIS_TYPE: 'single', REDIS_URL: `127.0.0.1:${single.port}` },
      ...{ REDIS_PERSECOND: 'true', REDIS_PERSECOND_TYPE: 'CLUSTER', REDIS_PERSECOND_URL: cluster.url },
    });
    expect(await ask(client)).toEqual([39, 999, 39]);
    expect(await buckets()).toBe(1);
    const roles = (await nodesOf(server)).map(({ redis }) => redis);
    expect(roles).toEqual(['main', 'per_second', 'per_second', 'per_second']);
  });

  test('two clusters', async () => {
    const { client } = await start({
      ...{ REDIS_PERSECOND: 'true', REDIS_PERSECOND_TYPE: 'cluster', REDIS_PERSECOND_URL: cluster.url },
    });
    expect(await ask(client)).toEqual([39, 999, 39]);
    expect(await buckets()).toBe(3);
  });
});

test('weir starts without any node, and decides once the nodes are available', async () => {
  for (const node of cluster.nodes) node.pause();
  const { server, client } = await start({}, false);
  await waitFor('the log', () =>
    server.log().some(({ msg }) => String(msg).includes('no node of the Redis Cluster answers')),
  );
  expect(await left(client, 1, 'strict=s')).toEqual(['rate limit store unavailable']);
  for (const node of cluster.nodes) node.resume();
  const isDecided = async () => typeof (await left(client, 1, 'strict=s'))[0] === 'number';
  await waitFor('decisions', isDecided);
  expect((await httpRequest(server.httpPort, '/healthcheck')).status).toBe(200);
  await cluster.waitStable();
});
