/*
 * Redirections and other refusals by nodes of a Redis Cluster. test/integration/cluster tests the replies of a real
 * cluster.
 */
import { expect, jest, test } from '@jest/globals';
import {
  type ClusterNodeOptions,
  ClusterNodes,
  MAX_CLUSTER_NODES,
} from '../../../../../src/storage/redis/cluster/cluster-nodes.js';
import { BucketSlots } from '../../../../../src/storage/redis/cluster/slot-keys.js';
import { endpointName, parseRedisUrl } from '../../../../../src/storage/redis/connection/redis-address.js';
import { RedisReplyError } from '../../../../../src/storage/redis/connection/redis-error.js';
import { DEFAULT_KEY_PREFIX, RedisKeys } from '../../../../../src/storage/redis/redis-key.js';
import { RedisStore } from '../../../../../src/storage/redis/redis-store.js';
import { TakeBatch } from '../../../../../src/storage/redis/take-batch.js';
import { REDIS } from '../../../../support/limiter/store-options.js';
import { HUNDRED, takeItem } from '../../../../support/limiter/take-items.js';

const keys = new RedisKeys(DEFAULT_KEY_PREFIX);

/**
 * Creates the nodes of a cluster. The first node serves all slots. The nodes share one store, because opening a store
 * is slow.
 */
async function setUp(onOpen = (): void => {}) {
  const places: (ClusterNodeOptions & { readonly name: string })[] = [];
  // Nothing listens on port 1.
  const store = new RedisStore({ ...REDIS, address: parseRedisUrl('127.0.0.1:1') });
  let staleReports = 0;
  const nodes = new ClusterNodes({
    slots: new BucketSlots(keys),
    monotonicMicros: () => 0,
    open: (endpoint, place) => {
      places.push({ ...place, name: endpointName(endpoint) });
      onOpen();
      return store;
    },
    takeAgain: () => [],
    onStaleSlots: () => staleReports++,
  });
  const master = { host: '127.0.0.1', port: 1 };
  const view = { from: '', epoch: 1, slots: 16_384, ids: new Set(['a']) };
  await nodes.apply({ ...view, ranges: [{ first: 0, last: 16_383, master }] });
  const batch = (): TakeBatch => {
    const one = new TakeBatch(keys, true, () => 0);
    void one.add([takeItem('a', HUNDRED)], Infinity);
    return one;
  };
  const refuse = (message: string): string =>
    (places[0] as ClusterNodeOptions).redirect(batch(), new RedisReplyError(message));
  return { nodes, places, refuse, staleReports: () => staleReports };
}

test('a view of thousands of masters is applied in many turns of the event loop', async () => {
  // Opening a node takes 0.1 ms.
  let now = 0;
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => now);
  const { nodes, places } = await setUp(() => {
    now += 0.1;
  });
  const ranges = Array.from({ length: 2000 }, (_, i) => ({
    ...{ first: i, last: i },
    master: { host: `127.1.${i >> 8}.${i & 255}`, port: 1 },
  }));
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await nodes.apply({ from: '', epoch: 2, slots: 2000, ids: new Set(['a']), ranges });
  isOver = true;
  clock.mockRestore();
  expect(places).toHaveLength(MAX_CLUSTER_NODES);
  expect(nodes.states).toHaveLength(MAX_CLUSTER_NODES - 1);
  expect(turns).toBeGreaterThan(40);
  await nodes.close();
});

test('a node that redirects calls to ever new addresses cannot add thousands of nodes', async () => {
  const { nodes, places, refuse } = await setUp();
  const fates = Array.from({ length: 1000 }, (_, i) => refuse(`MOVED 0 10.0.0.1:${1000 + i}`));
  expect(places.length).toBeLessThan(40);
  expect(fates.filter((fate) => fate === 'held').length).toBeGreaterThan(900);
  expect(nodes.states).toHaveLength(1);
  await nodes.close();
});

test.each([
  'MOVED 0 ?:7000',
  'ASK 0 ?:7000',
  'MOVED 0 :99999',
  'MOVED 0',
  'CLUSTERDOWN Hash slot not served',
])('calls wait for a new view if a redirect contains no node: %s', async (message) => {
  const { nodes, places, refuse, staleReports } = await setUp();
  expect(refuse(message)).toBe('held');
  expect([places.length, staleReports()]).toEqual([1, 1]);
  await nodes.close();
});

test.each(['127.0.0.1:7000', ':7000', '::1:7000', 'redis.example:7000'])(
  'a node is found by the name that other nodes use: %s',
  async (address) => {
    const { nodes, places, refuse } = await setUp();
    expect(refuse(`MOVED 0 ${address}`)).toBe('taken');
    const [, added] = places;
    expect(added?.name).toBe(address.replace(/^:(?!:)/, '127.0.0.1:').replace('::1:', '[::1]:'));
    await nodes.close();
  },
);

test('each probe of a node uses another slot, because a slot may be migrating', async () => {
  const { nodes, places } = await setUp();
  const tags = new Set(Array.from({ length: 20 }, () => places[0]?.probeTag()));
  expect(tags.size).toBeGreaterThan(1);
  await nodes.close();
});

test('a take from a slot that no node serves is certainly not sent', async () => {
  const { nodes } = await setUp();
  const master = { host: '127.0.0.1', port: 1 };
  const ranges = [{ first: 0, last: 0, master }];
  await nodes.apply({ from: '', epoch: 2, slots: 1, ids: new Set(['a']), ranges });
  const partition = nodes.partitionOf(takeItem('a', HUNDRED));
  expect(nodes.shardOf(partition)).toMatchObject({ reason: 'disconnected', unsent: true });
  await nodes.close();
});
