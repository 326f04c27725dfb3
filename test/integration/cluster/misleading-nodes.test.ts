/* Tests nodes of a real Redis Cluster that redirect calls in circles or to dead nodes, or are silent. */
import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../../src/limiter/window-unit.js';
import { waitFor } from '../../support/process/wait-for.js';
import { type RedisCluster, startCluster } from '../../support/redis/cluster.js';
import type { ClusterNode } from '../../support/redis/cluster-node.js';
import { type LoggedStore, openCluster, openWholeCluster } from '../../support/redis/cluster-stores.js';
import { itemOf, slotOfTenant, tenantOn } from '../../support/redis/cluster-tenants.js';

const SLOW = tokenBucketRate(1000, 1, UNIT_MICROS.day);

let cluster: RedisCluster;
let one: ClusterNode;
let other: ClusterNode;
let third: ClusterNode;
const servers: Server[] = [];

beforeAll(async () => {
  cluster = await startCluster();
  [one, other, third] = cluster.nodes as [ClusterNode, ClusterNode, ClusterNode];
});
afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
});

/** Starts a server that accepts connections and stays silent. */
async function hangingNode(): Promise<string> {
  const server = createServer((socket) => socket.resume().on('error', () => {}));
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Returns how often each result occurred. */
async function results(store: LoggedStore, tenant: string, names: readonly string[]): Promise<string[]> {
  return Promise.all(names.map((name) => store.take(itemOf(tenant, name, SLOW))));
}
const NAMES = Array.from({ length: 30 }, (_, i) => `bucket ${i}`);
/** Capacity for a request or two, so that a leak is detected soon. */
const LITTLE_ROOM = { maxInFlight: 60, timeoutMicros: 5_000_000 };

describe('redirected calls', () => {
  test('end if they are redirected in circles, and weir asks the cluster again for its slots', async () => {
    const store = await openWholeCluster(cluster.url, LITTLE_ROOM);
    const tenant = await tenantOn(one);
    const slot = slotOfTenant(tenant);
    // Each of the two nodes believes that the other one has the slot; the third one does not know.
    await other.command('CLUSTER', 'SETSLOT', slot, 'NODE', one.id);
    await one.command('CLUSTER', 'SETSLOT', slot, 'NODE', other.id);
    const said = await store.store.take([itemOf(tenant, 'a', SLOW)], Infinity);
    expect(said).toMatchObject({ reason: 'rejected', message: expect.stringContaining('MOVED') });
    for (let turn = 0; turn < 3; turn++) {
      const found = await results(store, tenant, NAMES);
      expect(found.filter((result) => result === 'decided')).toEqual([]);
    }
    expect(await store.take(itemOf(await tenantOn(third), 'a', SLOW))).toBe('decided');
    expect(store.store.isComplete).toBe(true);
    await one.command('CLUSTER', 'SETSLOT', slot, 'NODE', one.id);
    await waitFor('the slot to be served', async () => {
      return (await store.take(itemOf(tenant, 'a', SLOW))) === 'decided';
    });
    expect(new Set(await results(store, tenant, NAMES))).toEqual(new Set(['decided']));
    await other.command('CLUSTER', 'SETSLOT', slot, 'NODE', one.id);
    await cluster.waitStable();
  });

  test('fail immediately if ASK names a dead node, and leak no capacity', async () => {
    const store = await openWholeCluster(cluster.url, LITTLE_ROOM);
    const tenant = await tenantOn(one);
    const slot = slotOfTenant(tenant);
    expect(await store.take(itemOf(tenant, 'old', SLOW))).toBe('decided');
    await cluster.beginMove(slot, third);
    await third.kill();
    await waitFor('the loss', () => !store.store.isComplete);
    await waitFor('failures', async () => (await store.take(itemOf(tenant, 'new', SLOW))) !== 'decided');
    for (let turn = 0; turn < 5; turn++) {
      expect(new Set(await results(store, tenant, NAMES))).toEqual(new Set(['disconnected']));
    }
    // The node decides requests for buckets that it still has.
    expect(new Set(await results(store, tenant, Array(30).fill('old')))).toEqual(new Set(['decided']));
    const wide = Array.from({ length: 20 }, (_, i) => itemOf(tenant, `wide ${i}`, SLOW));
    for (let turn = 0; turn < 5; turn++) expect(await store.take(...wide)).toBe('disconnected');
    await one.command('CLUSTER', 'SETSLOT', slot, 'STABLE');
    expect(await store.take(...wide)).toBe('decided');
    await third.restart();
    await third.command('CLUSTER', 'SETSLOT', slot, 'STABLE');
    await cluster.waitStable();
    await waitFor('all to be up', () => store.store.isComplete);
  });
});

describe('the query for slots', () => {
  test('is not delayed by a silent node', async () => {
    const hanging = await hangingNode();
    const store = openCluster(`${hanging},${one.address}`);
    expect(await store.take(itemOf(await tenantOn(other), 'a', SLOW))).toBe('decided');
    expect(store.log.filter((line) => !line.startsWith('info'))).toEqual([]);
  });

  test('ends with the store, like everything else', async () => {
    const hanging = await hangingNode();
    const count = (kind: string): number =>
      process.getActiveResourcesInfo().filter((one) => one === kind).length;
    const timers = count('Timeout');
    const lost = openCluster(hanging);
    const calls = lost.take(itemOf('a', 'a', SLOW));
    const [server] = servers as [Server];
    await waitFor('it to be asked', () => {
      return new Promise<boolean>((resolve) => server.getConnections((_, count) => resolve(count > 0)));
    });
    await lost.store.close();
    expect(await calls).toBe('disconnected');
    const used = await openWholeCluster(cluster.url);
    await used.take(itemOf(await tenantOn(one), 'a', SLOW));
    await used.store.close();
    // The sockets of the hanging node belong to this process, too.
    await waitFor('all to be gone', () => count('TCPSocketWrap') === 0 && count('Timeout') <= timers);
  });
});

test('requests over as many slots as they may have limits delay no other, and free their capacity', async () => {
  const store = await openWholeCluster(cluster.url, { timeoutMicros: 20_000_000 });
  const takes = Array.from({ length: 256 }, (_, i) => itemOf(`wide tenant ${i}`, 'a', SLOW));
  const tenant = await tenantOn(other);
  let decided = 0;
  let over = false;
  const asking = (async () => {
    while (!over) {
      expect(await store.take(itemOf(tenant, 'a', SLOW))).toBe('decided');
      decided++;
    }
  })();
  for (let turn = 0; turn < 60; turn++) {
    expect(await store.store.take(takes, Infinity)).toHaveLength(takes.length);
  }
  over = true;
  await asking;
  expect(decided).toBeGreaterThan(20);
});

test('the failure of the whole cluster is logged once, and the cluster recovers', async () => {
  const store = await openWholeCluster(cluster.url, { timeoutMicros: 300_000 });
  const tenant = await tenantOn(one);
  for (const node of cluster.nodes) await node.kill();
  await waitFor('the loss', () => !store.store.connected);
  const refused = (): number => store.faults.filter((fault) => fault === 'refused').length;
  await waitFor('several looks', () => refused() >= 10);
  const lines = store.log.filter((line) => line.includes('no node of the Redis Cluster answers'));
  expect(lines).toHaveLength(1);
  for (const node of cluster.nodes) await node.restart();
  await waitFor('the cluster', () => store.store.isComplete);
  await waitFor('decisions', async () => (await store.take(itemOf(tenant, 'a', SLOW))) === 'decided');
  await cluster.waitStable();
});
