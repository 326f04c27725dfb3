/* Tests holds that a hung node of a real Redis Cluster places after another node has denied their request. */
import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { CODE } from '../../../src/codec/messages.js';
import { RlsClient } from '../../support/grpc/rls-client.js';
import { descriptor } from '../../support/policy/decider.js';
import { waitFor } from '../../support/process/wait-for.js';
import { type RedisCluster, startCluster } from '../../support/redis/cluster.js';
import type { ClusterNode } from '../../support/redis/cluster-node.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';

const POLICY = `
domain: d
descriptors:
  - { key: customer, rate_limit: { concurrency: { max: 2, expires_after: 10m } } }
  - key: budget
    rate_limit: { unit: year, requests_per_unit: 100, hold: { amount: 60, expires_after: 10m } }
  - { key: strict, rate_limit: { token_bucket: { max_tokens: 1, fill_interval: 1000h } } }
`;

let cluster: RedisCluster;
let server: WeirServer;
let client: RlsClient;
beforeAll(async () => {
  cluster = await startCluster();
  const env = { REDIS_TYPE: 'cluster', REDIS_URL: cluster.url, REDIS_TIMEOUT: '1s' };
  server = await startWeir({ policy: POLICY, env });
  client = new RlsClient(server.grpcPort);
});
afterEach(() => {
  for (const node of cluster.nodes) if (!node.isRunning) node.resume();
});

const ask = async (...entries: readonly string[]) => {
  const descriptors = entries.map((entry) => descriptor([entry]));
  const { response, details } = await client.ask('d', descriptors, { timeoutMs: 10_000 });
  if (response === undefined) throw new Error(details);
  return response;
};

/** Returns what is left for an entry; undefined without an answer. */
async function left(entry: string): Promise<number | undefined> {
  const look = descriptor([entry], { hitsAddend: 0 });
  const { response } = await client.ask('d', [look], { timeoutMs: 10_000 });
  return response?.statuses[0]?.limitRemaining;
}

/** Returns the node with a key of this value. */
async function nodeOf(value: string): Promise<ClusterNode | undefined> {
  for (const node of cluster.nodes)
    if (((await node.command('KEYS', `*${value}*`)) as unknown[]).length > 0) return node;
  return undefined;
}

test.each([
  ['customer', 2],
  ['budget', 100],
])('%s: they end when the node answers again', async (key, all) => {
  const strict = `strict=${key}`;
  expect(await ask(strict)).toMatchObject({ overallCode: CODE.OK });
  const denying = await nodeOf(key);
  // A caller whose bucket is on another node.
  let caller: string | undefined;
  let node: ClusterNode | undefined;
  for (let i = 0; caller === undefined; i++) {
    const value = `${key}${i}x`;
    const token = (await ask(`${key}=${value}`)).dynamicMetadata?.['hold'];
    await ask(`hold=${token}`);
    node = await nodeOf(value);
    if (node === denying) continue;
    await node?.command('FLUSHALL');
    caller = `${key}=${value}`;
  }
  node?.pause();
  expect(await ask(caller, strict)).toMatchObject({
    overallCode: CODE.OVER_LIMIT,
    dynamicMetadata: undefined,
  });
  node?.resume();
  const value = caller.replace(`${key}=`, '');
  await waitFor('the node to place the hold', async () => (await nodeOf(value)) === node);
  await waitFor('the hold to end', async () => (await left(caller)) === all);
});
