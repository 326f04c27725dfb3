/* Tests nodes of a real Redis Cluster that die, hang, join and leave: only tenants on these nodes are affected. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { StorageError } from '../../../src/limiter/bucket-store.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../../src/limiter/window-unit.js';
import { waitFor } from '../../support/process/wait-for.js';
import { type RedisCluster, startCluster } from '../../support/redis/cluster.js';
import type { ClusterNode } from '../../support/redis/cluster-node.js';
import { type LoggedStore, openCluster, openWholeCluster } from '../../support/redis/cluster-stores.js';
import { itemOf, slotOfTenant, tenantOn, tenantsOnAll } from '../../support/redis/cluster-tenants.js';

const SLOW = tokenBucketRate(1000, 1, UNIT_MICROS.day);
/** Longer than any answer in a test takes. */
const PATIENT = { timeoutMicros: 10_000_000 };

const hit = (tenant: string) => itemOf(tenant, 'a', SLOW);

/** Resolves when requests of the tenant fail without waiting for a node. */
const untilRefused = (store: LoggedStore, tenant: string): Promise<unknown> =>
  waitFor('failures at once', async () => {
    const result = await store.take(hit(tenant));
    return result === 'disconnected' || result === 'breaker_open';
  });

describe('three masters, each with a replica', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster({ replicas: 1 });
  });

  test("all nodes are found through one replica's address, and each has its tenants", async () => {
    const replica = cluster.nodes[3] as ClusterNode;
    const store = await openWholeCluster(replica.address);
    const masters = await cluster.masters();
    expect(store.store.nodes.map(({ name }) => name).sort()).toEqual(
      masters.map(({ address }) => address).sort(),
    );
    for (const master of masters) {
      await master.command('FLUSHALL');
      const tenant = await tenantOn(master);
      expect(await store.take(hit(tenant))).toBe('decided');
      expect(await master.command('CLUSTER', 'COUNTKEYSINSLOT', slotOfTenant(tenant))).toBe(1);
    }
    expect(store.log).toContain(`info: Redis cluster ${replica.address} has 3 masters`);
    expect(store.faults).toEqual([]);
    expect(store.store.connections).toEqual({ active: 3, opened: 3, closed: 0 });
  });

  test.each<[what: string, end: (node: ClusterNode) => unknown, begin: (node: ClusterNode) => unknown]>([
    ['is killed', (node) => node.kill(), (node) => node.restart()],
    ['hangs', (node) => node.pause(), (node) => node.resume()],
  ])('a master %s', async (what, end, begin) => {
    const isKilled = what === 'is killed';
    // A master that hangs is detected by its silence.
    const store = await openWholeCluster(cluster.url, isKilled ? PATIENT : { timeoutMicros: 300_000 });
    const [dead, ...others] = (await tenantsOnAll(cluster)) as [string, string, string];
    const slot = slotOfTenant(dead);
    const old = await cluster.masterOf(slot);
    let over = false;
    const others_ = others.map(async (tenant) => {
      while (!over) {
        expect(await store.take(hit(tenant))).toBe('decided');
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    });
    await end(old);
    await waitFor('the loss', async () => {
      return (await store.take(hit(dead))) !== 'decided' && !store.store.isComplete;
    });
    expect(store.store.connected).toBe(true);
    expect(store.store.nodes).toContainEqual(expect.objectContaining({ name: old.address, up: false }));
    await untilRefused(store, dead);
    const promoted = await cluster.successorOf(old, slot);
    await waitFor('the tenant to be decided again', async () => (await store.take(hit(dead))) === 'decided');
    await waitFor('all to be up', () => store.store.isComplete);
    over = true;
    await Promise.all(others_);
    expect(store.store.nodes).toContainEqual(expect.objectContaining({ name: promoted.address, up: true }));
    expect(store.store.nodes).toHaveLength(3);
    await begin(old);
    await cluster.waitStable();
    expect(await store.take(hit(dead))).toBe('decided');
  });

  test('a requested failover costs no decision', async () => {
    const store = await openWholeCluster(cluster.url, PATIENT);
    const tenant = (await tenantsOnAll(cluster))[0] as string;
    const slot = slotOfTenant(tenant);
    let over = false;
    const asking = (async () => {
      while (!over) expect(await store.take(hit(tenant))).toBe('decided');
    })();
    const promoted = await Promise.race([cluster.failover(slot), asking]);
    over = true;
    await asking;
    expect(await store.take(hit(tenant))).toBe('decided');
    expect(await cluster.masterOf(slot)).toBe(promoted);
    await cluster.waitStable();
  });

  test('a node is added, gets a slot, loses it, and is removed', async () => {
    const store = await openWholeCluster(cluster.url);
    const [from] = (await cluster.masters()) as [ClusterNode];
    const tenant = await tenantOn(from);
    const slot = slotOfTenant(tenant);
    expect(await store.take(hit(tenant))).toBe('decided');
    const added = await cluster.addNode();
    await cluster.moveSlot(slot, added);
    // The node that had the slot redirects to the new node.
    expect(await store.take(hit(tenant))).toBe('decided');
    await waitFor('the new node', () => store.store.nodes.some(({ name }) => name === added.address));
    expect(store.store.nodes).toContainEqual(expect.objectContaining({ name: added.address, up: true }));
    await cluster.waitStable();
    await cluster.moveSlot(slot, from);
    expect(await store.take(hit(tenant))).toBe('decided');
    await waitFor('it to have no slots', () => !store.store.nodes.some(({ name }) => name === added.address));
    await cluster.removeNode(added);
    expect(await store.outcome(itemOf(tenant, 'a', SLOW, { hits: 0 }))).toMatchObject({ remaining: 997 });
    expect(store.store.isComplete).toBe(true);
  });
});

describe('a slot that no node serves', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });

  test('its tenants are answered immediately, other tenants are decided, and the log reports the slot', async () => {
    const store = await openWholeCluster(cluster.url, PATIENT);
    const [lost, other] = (await tenantsOnAll(cluster)) as [string, string];
    const slot = slotOfTenant(lost);
    const node = await cluster.masterOf(slot);
    for (const each of cluster.nodes) await each.command('CLUSTER', 'DELSLOTS', slot).catch(() => {});
    expect(await store.take(hit(lost))).not.toBe('decided');
    await waitFor('the log', () => store.log.some((line) => line.includes('serves 1 slot:')));
    expect(await store.take(hit(lost))).toBe('disconnected');
    expect(await store.take(hit(other))).toBe('decided');
    expect([store.store.connected, store.store.isComplete]).toEqual([true, false]);
    expect(store.log.filter((line) => line.startsWith('error'))).toEqual([
      `error: no node of Redis cluster ${cluster.url.replaceAll(',', ', ')} serves 1 slot: on_store_failure ` +
        'decides requests whose buckets are in such a slot; run redis-cli --cluster check, and restart the ' +
        'master, or assign the slots to another master (CLUSTER ADDSLOTS)',
    ]);
    await node.command('CLUSTER', 'ADDSLOTS', slot);
    await waitFor('the slot to be served again', async () => (await store.take(hit(lost))) === 'decided');
    await waitFor('the log', () => store.log.at(-1)?.endsWith('serves all slots'));
    await cluster.waitStable();
  });

  test('cluster-require-full-coverage yes: all requests are refused, and decided again afterwards', async () => {
    const store = await openWholeCluster(cluster.url, { timeoutMicros: 300_000 });
    const tenants = (await tenantsOnAll(cluster)) as [string, string, string];
    for (const node of cluster.nodes) {
      await node.command('CONFIG', 'SET', 'cluster-require-full-coverage', 'yes');
    }
    const slot = slotOfTenant(tenants[0]);
    const node = await cluster.masterOf(slot);
    for (const each of cluster.nodes) await each.command('CLUSTER', 'DELSLOTS', slot).catch(() => {});
    await waitFor('the cluster to be down', async () => {
      const results = await Promise.all(tenants.map((tenant) => store.take(hit(tenant))));
      return results.every((result) => result !== 'decided');
    });
    await waitFor('the log', () =>
      store.log.some((line) =>
        line.includes('check the masters and slots of the Redis Cluster (CLUSTERDOWN'),
      ),
    );
    expect(store.faults).toContain('moved');
    await node.command('CLUSTER', 'ADDSLOTS', slot);
    for (const tenant of tenants) {
      await waitFor('decisions', async () => (await store.take(hit(tenant))) === 'decided');
    }
    for (const each of cluster.nodes) {
      await each.command('CONFIG', 'SET', 'cluster-require-full-coverage', 'no');
    }
    await cluster.waitStable();
  });

  test('the first calls wait for the first slot map, and fail if it does not arrive', async () => {
    const tenants = await tenantsOnAll(cluster);
    const early = openCluster((cluster.nodes[1] as ClusterNode).address, PATIENT);
    const results = await Promise.all([...tenants, ...tenants].map((tenant) => early.take(hit(tenant))));
    expect(new Set(results)).toEqual(new Set(['decided']));
    for (const node of cluster.nodes) node.pause();
    try {
      const late = openCluster(cluster.url, { timeoutMicros: 200_000 });
      const result = await late.store.take([hit(tenants[0] as string)], Infinity);
      expect(result).toMatchObject({ reason: 'disconnected' });
      await waitFor('the log', () => late.log.length > 0);
      expect(late.log[0]).toMatch(
        /check whether Redis hangs, REDIS_URL, .* \(no node of the Redis Cluster answers: no answer within/,
      );
      // Calls do not wait for an attempt that has failed.
      expect(late.store.take([hit(tenants[0] as string)], Infinity, false)).not.toBe('decided');
      for (const node of cluster.nodes) node.resume();
      await waitFor('the cluster', () => late.store.isComplete);
      expect(await late.take(hit(tenants[0] as string))).toBe('decided');
    } finally {
      for (const node of cluster.nodes) node.resume();
      await cluster.waitStable();
    }
  });

  test.each([
    ['that hangs', 'made'],
    ['that took', 'skipped'],
  ] as const)(
    'if the node %s is killed during a request over two nodes, giving back is %s',
    async (which, result) => {
      const store = await openWholeCluster(cluster.url, PATIENT);
      const [took, hangs] = (await tenantsOnAll(cluster)) as [string, string];
      const [takes, hung] = (await cluster.mastersOf([took, hangs].map(slotOfTenant))) as [
        ClusterNode,
        ClusterNode,
      ];
      const calls = async (): Promise<number> =>
        Number(
          /cmdstat_evalsha:calls=(\d+)/.exec(String(await takes.command('INFO', 'commandstats')))?.[1] ?? 0,
        );
      const before = await calls();
      hung.pause();
      try {
        const call = store.take(hit(took), hit(hangs));
        await waitFor('the first node to have taken the tokens', async () => (await calls()) > before);
        if (which === 'that hangs') {
          await hung.kill();
          expect(await call).toBe('disconnected');
        } else {
          await takes.kill();
          await waitFor('the loss', () => !store.store.isComplete);
          await hung.kill();
          expect(await call).toBe('disconnected');
          await takes.restart();
        }
      } finally {
        await hung.kill();
        await hung.restart();
      }
      await waitFor('the end of giving back', () => store.store.rollbackStats[result] === 1);
      await cluster.waitStable();
      await waitFor('all to be up', () => store.store.isComplete);
      const look = (tenant: string) => store.outcome(itemOf(tenant, 'a', SLOW, { hits: 0 }));
      expect([(await look(took)).remaining, (await look(hangs)).remaining]).toEqual([1000, 1000]);
    },
  );

  test('closing ends pending calls', async () => {
    const tenants = await tenantsOnAll(cluster);
    const store = await openWholeCluster(cluster.url, PATIENT);
    const calls = tenants.map((tenant) => store.store.take([hit(tenant)], Infinity));
    const closed = store.store.close();
    expect((await Promise.all(calls)).some((result) => result instanceof StorageError)).toBe(false);
    await closed;
    expect(await store.take(hit(tenants[0] as string))).toBe('disconnected');

    const other = await openWholeCluster(cluster.url, PATIENT);
    const hung = await cluster.masterOf(slotOfTenant(tenants[0] as string));
    hung.pause();
    try {
      const call = other.take(hit(tenants[0] as string));
      await other.store.close();
      expect(await call).toBe('disconnected');
    } finally {
      hung.resume();
      await cluster.waitStable();
    }
  });
});
