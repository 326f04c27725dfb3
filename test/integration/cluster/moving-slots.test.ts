/* Moves slots of a real Redis Cluster while they are used: each take is decided exactly once. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { StorageError, type Take } from '../../../src/limiter/bucket-store.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../../src/limiter/window-unit.js';
import { toolPath } from '../../support/process/tools.js';
import { waitFor } from '../../support/process/wait-for.js';
import { type RedisCluster, startCluster } from '../../support/redis/cluster.js';
import type { ClusterNode } from '../../support/redis/cluster-node.js';
import { type LoggedStore, openWholeCluster } from '../../support/redis/cluster-stores.js';
import { itemOf, slotOfTenant, tenantOn } from '../../support/redis/cluster-tenants.js';

/** A capacity that does not run out or refill during a test. */
const ROOM = 1_000_000;
const SLOW = tokenBucketRate(ROOM, 1, UNIT_MICROS.hour);
/** Number of concurrent requests. */
const CALLERS = 8;

describe.each(['redis-server', 'redis-server-old', 'valkey-server'])('%s', (tool) => {
  let cluster: RedisCluster;
  let one: ClusterNode;
  let other: ClusterNode;
  let tenant: string;
  let slot: number;

  beforeAll(async () => {
    cluster = await startCluster({ masters: 2, binary: toolPath(tool) });
    [one, other] = cluster.nodes as [ClusterNode, ClusterNode];
  });

  /** Opens a store that knows that the tenant is on `one`. */
  async function open(): Promise<LoggedStore> {
    const opened = await openWholeCluster(one.address);
    tenant = await tenantOn(one);
    slot = slotOfTenant(tenant);
    return opened;
  }
  const bucket = (name: string, options?: Parameters<typeof itemOf>[3]): Take =>
    itemOf(tenant, name, SLOW, options);
  /** Nodes that do not agree yet on the previous move can each believe that the other one has the slot. */
  const move = async (to: ClusterNode): Promise<void> => {
    await cluster.waitStable();
    await cluster.moveSlot(slot, to);
  };
  const taken = async (store: LoggedStore, name: string): Promise<number> =>
    ROOM - (await store.outcome(bucket(name, { hits: 0 }))).remaining;

  /** Sends requests while `work` runs, which can wait for more allowed requests. Returns how many were allowed. */
  async function admittedWhile(
    { store }: LoggedStore,
    takes: readonly Take[],
    work: (untilMore: () => Promise<void>) => Promise<void>,
  ): Promise<number> {
    let admitted = 0;
    let over = false;
    const ask = async (): Promise<void> => {
      while (!over) {
        const result = await store.take(takes, Infinity);
        if (result instanceof StorageError) throw result;
        admitted++;
      }
    };
    const callers = Promise.all(Array.from({ length: CALLERS }, ask));
    const untilMore = async (): Promise<void> => {
      const before = admitted;
      await waitFor('requests in between', () => admitted >= before + 2 * CALLERS);
    };
    await Promise.race([work(untilMore), callers]);
    over = true;
    await callers;
    return admitted;
  }

  test('a slot with a hot tenant moves back and forth under load', async () => {
    const store = await open();
    const admitted = await admittedWhile(store, [bucket('a')], async () => {
      for (const to of [other, one, other, one]) await move(to);
    });
    expect(admitted).toBeGreaterThan(CALLERS);
    expect(await taken(store, 'a')).toBe(admitted);
  });

  test('requests of several buckets work while the buckets are on two nodes', async () => {
    const store = await open();
    const names = ['a', 'b', 'c'];
    await store.take(...names.map((name) => bucket(name)));
    const admitted = await admittedWhile(
      store,
      ['a', 'b', 'c', 'd'].map((name) => bucket(name)),
      async (untilMore) => {
        await cluster.beginMove(slot, other);
        for (const _ of names) {
          await cluster.moveKeys(slot, other, 1);
          await untilMore();
        }
        await cluster.moveKeys(slot, other);
        await cluster.endMove(slot, other);
      },
    );
    for (const name of names) expect([name, await taken(store, name)]).toEqual([name, admitted + 1]);
    expect(await taken(store, 'd')).toBe(admitted);
    await move(one);
  });

  test('a denied request gives back tokens, loses them if the slot moved, and never creates tokens', async () => {
    const store = await open();
    await store.take(bucket('a'), bucket('b'), bucket('empty', { hits: ROOM }));
    await cluster.beginMove(slot, other);
    await cluster.moveKeys(slot, other, 1);
    expect(await store.take(bucket('a'), bucket('b'), bucket('empty'))).toBe('decided');
    await waitFor('the end of giving back', () => {
      const { made, failed } = store.store.rollbackStats;
      return made + failed === 1;
    });
    for (const name of ['a', 'b']) expect([1, 2]).toContain(await taken(store, name));
    expect(await taken(store, 'empty')).toBe(ROOM);
    await cluster.moveKeys(slot, other);
    await cluster.endMove(slot, other);
    await move(one);
  });

  test('a stale slot map is corrected, in both directions', async () => {
    const stale = await open();
    await stale.take(bucket('a'));
    await move(other);
    const fresh = await openWholeCluster(other.address);
    const count = 20;
    const results = await Promise.all(
      Array.from({ length: count }, (_, i) => (i % 2 === 0 ? stale : fresh).take(bucket('a'))),
    );
    expect(new Set(results)).toEqual(new Set(['decided']));
    await move(one);
    expect(await fresh.take(bucket('a'))).toBe('decided');
    expect(await taken(stale, 'a')).toBe(count + 2);
    // No fault was reported.
    expect([...stale.faults, ...fresh.faults]).toEqual([]);
  });
});
