/* Tests mistakes and unusual choices in the set-up of a Redis Cluster: it works, or the log contains instructions. */
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { StorageError } from '../../../src/limiter/bucket-store.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../../src/limiter/window-unit.js';
import { mainRedis } from '../../../src/server/store/redis-options.js';
import { freePorts } from '../../support/process/free-port.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { untilLogged, waitFor } from '../../support/process/wait-for.js';
import { BUS_OFFSET, type RedisCluster, startCluster } from '../../support/redis/cluster.js';
import type { ClusterNode } from '../../support/redis/cluster-node.js';
import { itemOf, slotOfTenant, tenantOn, tenantsOnAll } from '../../support/redis/cluster-tenants.js';
import { startRedis } from '../../support/redis/redis-server.js';
import { startSentinel } from '../../support/redis/sentinels.js';
import { openSingleStore } from '../../support/redis/single-stores.js';
import { tlsArguments } from '../../support/redis/tls-arguments.js';
import { writeTlsFiles } from '../../support/tls/tls-files.js';
import { settingsOf } from '../../support/weir/settings.js';

const SLOW = tokenBucketRate(1000, 1, UNIT_MICROS.hour);
let log: string[] = [];
let faults: string[] = [];
let cluster: RedisCluster;
let node: ClusterNode;

beforeAll(async () => {
  cluster = await startCluster();
  [node] = cluster.nodes as [ClusterNode];
});
afterEach(async () => {
  log = [];
  faults = [];
});

/** Opens the store that the variables configure. */
function open(environment: Record<string, string>): ReturnType<typeof openSingleStore> {
  const settings = settingsOf({ REDIS_TYPE: 'cluster', ...environment });
  return openSingleStore({
    ...mainRedis(settings),
    log: (level, message) => log.push(`${level}: ${message}`),
    observeFault: (fault) => faults.push(fault),
  });
}

async function openWhole(environment: Record<string, string>): Promise<ReturnType<typeof openSingleStore>> {
  const store = open(environment);
  await waitFor('all nodes to be up', () => store.isComplete);
  return store;
}

async function take(
  store: ReturnType<typeof openSingleStore>,
  ...tenants: readonly string[]
): Promise<string> {
  const result = await store.take(
    tenants.map((tenant) => itemOf(tenant, 'a', SLOW)),
    Infinity,
  );
  return result instanceof StorageError ? result.reason : 'decided';
}

const logged = (pattern: RegExp): Promise<unknown> => untilLogged(log, pattern);

describe('set-ups that are refused', () => {
  test('a Redis without cluster mode and REDIS_TYPE=CLUSTER', async () => {
    const redis = await startRedis();
    const store = open({ REDIS_URL: `127.0.0.1:${redis.port},127.0.0.1:${redis.port}` });
    await logged(/REDIS_URL must list nodes of one Redis Cluster; .* REDIS_TYPE=SINGLE \(ERR .* disabled/);
    expect(await take(store, 'a')).toBe('disconnected');
    expect(faults[0]).toBe('not_redis');
    // Health and metrics report the named servers until the nodes are known.
    const { port } = redis;
    expect(store.nodes).toMatchObject([{ name: `127.0.0.1:${port}`, up: false, reason: 'disconnected' }]);

    log = [];
    const beside = await openWhole({ REDIS_URL: `127.0.0.1:${redis.port},${node.address}` });
    expect(beside.nodes).toHaveLength(3);
  });

  test('a Sentinel and REDIS_TYPE=CLUSTER', async () => {
    const redis = await startRedis();
    const sentinel = await startSentinel({ masterName: 'mymaster', masterPort: redis.port, quorum: 1 });
    const store = open({ REDIS_URL: `127.0.0.1:${sentinel.port}` });
    await logged(/REDIS_URL must list nodes of one Redis Cluster; .* \(ERR unknown command/);
    expect(await take(store, 'a')).toBe('disconnected');
  });

  test('a node of a cluster and REDIS_TYPE=SINGLE', async () => {
    const store = open({ REDIS_TYPE: 'single', REDIS_URL: node.address });
    await logged(/if this server is a node of a Redis Cluster, set REDIS_TYPE=CLUSTER \((?:MOVED|CROSSSLOT)/);
    expect(await take(store, await tenantOn(node))).not.toBe('decided');
    expect(store.everReached).toBe(false);
    // Each probe is refused for another slot, and one log line covers all of them.
    await waitFor('further probes', () => faults.length > 3);
    expect(log).toHaveLength(1);
  });

  test('a node that serves all slots alone', async () => {
    const alone = await startCluster({ masters: 1 });
    const single = open({ REDIS_TYPE: 'single', REDIS_URL: alone.url });
    await logged(/if this server is a node of a Redis Cluster, set REDIS_TYPE=CLUSTER/);
    expect(single.everReached).toBe(false);
    expect(await take(single, 'a', 'b')).not.toBe('decided');
    const store = await openWhole({ REDIS_URL: alone.url });
    expect(await take(store, 'a', 'b')).toBe('decided');
  });

  test('nodes that get their slots later', async () => {
    const [port] = (await freePorts(1, BUS_OFFSET)) as [number];
    const fresh = await startRedis({ port, args: ['--cluster-enabled', 'yes'] });
    const store = open({ REDIS_URL: `127.0.0.1:${fresh.port}` });
    await logged(
      /check the masters and slots of the Redis Cluster \(no node of the Redis Cluster has slots\)/,
    );
    expect(await take(store, 'a')).toBe('disconnected');
  });

  test('addresses that lead to two clusters, at the start and later', async () => {
    const second = await startCluster({ masters: 1 });
    const both = open({ REDIS_URL: `${node.address},${second.url}` });
    await logged(/REDIS_URL must list .* \(127\S+ and 127\S+ belong to different Redis Clusters\)/);
    expect(await take(both, 'a')).toBe('disconnected');
    expect(both.everReached).toBe(false);
    expect(log).toHaveLength(1);

    second.nodes[0]?.pause();
    log = [];
    const later = await openWhole({ REDIS_URL: `${second.url},${cluster.url}` });
    second.nodes[0]?.resume();
    const tenants = await tenantsOnAll(cluster);
    expect(await take(later, ...tenants)).toBe('decided');
    expect(await second.nodes[0]?.command('DBSIZE')).toBe(0);
  });
});

describe('nodes that announce other names', () => {
  afterEach(async () => {
    for (const one of cluster.nodes) {
      await one.command('CONFIG', 'SET', 'cluster-preferred-endpoint-type', 'ip');
      await one.command('CONFIG', 'SET', 'cluster-announce-hostname', '');
    }
  });
  const eachIs = async (name: string, value: string): Promise<void> => {
    for (const one of cluster.nodes) await one.command('CONFIG', 'SET', name, value);
  };

  test('host names', async () => {
    await eachIs('cluster-announce-hostname', 'localhost');
    await eachIs('cluster-preferred-endpoint-type', 'hostname');
    await waitFor('all names to be known', async () => {
      const told = await node.command('CLUSTER', 'SLOTS');
      return JSON.stringify(told).match(/"localhost"/g)?.length === 3;
    });
    const store = await openWhole({ REDIS_URL: node.address });
    expect(store.nodes.map(({ name }) => name.split(':')[0])).toEqual([
      'localhost',
      'localhost',
      'localhost',
    ]);
    expect(await take(store, ...(await tenantsOnAll(cluster)))).toBe('decided');
  });

  test('missing host names, and no address at all: calls still reach their nodes', async () => {
    await eachIs('cluster-preferred-endpoint-type', 'hostname');
    const store = await openWhole({ REDIS_URL: node.address });
    const tenant = await tenantOn(node);
    const slot = slotOfTenant(tenant);
    expect(await take(store, tenant)).toBe('decided');
    const to = cluster.nodes[1] as ClusterNode;
    await cluster.waitStable();
    await cluster.moveSlot(slot, to);
    expect(await take(store, tenant)).toBe('decided');
    await cluster.waitStable();
    await cluster.moveSlot(slot, node);
    // An empty address means the address of the node that reports it, which is right here.
    await eachIs('cluster-preferred-endpoint-type', 'unknown-endpoint');
    expect(await take(store, tenant)).toBe('decided');
    await cluster.waitStable();
    await cluster.moveSlot(slot, to);
    expect(await take(store, tenant)).toBe('decided');
    await cluster.waitStable();
    await cluster.moveSlot(slot, node);
    expect(await take(store, tenant)).toBe('decided');
    expect(faults).toEqual([]);
    await cluster.waitStable();
  });
});

describe('logins', () => {
  const RIGHTS = [
    ...['~weir:1:*', '+evalsha', '+eval', '+mget', '+set', '+del', '+time'],
    ...['+cluster|slots', '+cluster|info', '+asking'],
  ];
  const onAll = async (...command: readonly [string, ...string[]]): Promise<void> => {
    for (const one of cluster.nodes) await one.command(...command);
  };
  afterEach(() => onAll('ACL', 'DELUSER', 'limits'));

  test('a user with the rights in the manual, while a slot is moved', async () => {
    await onAll('ACL', 'SETUSER', 'limits', 'on', '>right', ...RIGHTS);
    const store = await openWhole({ REDIS_URL: node.address, REDIS_AUTH: 'limits:right' });
    const tenant = await tenantOn(node);
    const to = cluster.nodes[1] as ClusterNode;
    await cluster.beginMove(slotOfTenant(tenant), to);
    expect(await take(store, tenant, ...(await tenantsOnAll(cluster)))).toBe('decided');
    await cluster.moveKeys(slotOfTenant(tenant), to);
    await cluster.endMove(slotOfTenant(tenant), to);
    await cluster.waitStable();
    await cluster.moveSlot(slotOfTenant(tenant), node);
    expect(await take(store, tenant)).toBe('decided');
    expect([log.filter((line) => !line.startsWith('info')), faults]).toEqual([[], []]);
  });

  test('missing rights, and a wrong password', async () => {
    await onAll('ACL', 'SETUSER', 'limits', 'on', '>right', ...RIGHTS, '-cluster|slots');
    open({ REDIS_URL: node.address, REDIS_AUTH: 'limits:right' });
    await logged(/it refuses a command; check the permissions of the user \(NOPERM .*cluster\|slots/);
    await onAll('ACL', 'SETUSER', 'limits', '+cluster|slots', '-mget');
    const store = open({ REDIS_URL: node.address, REDIS_AUTH: 'limits:right' });
    await logged(/redis:\/\/127\S+ .* check the permissions of the user \((?:ERR The user|NOPERM)/);
    await store.close();
    // These rights are needed only while a slot moves.
    await onAll('ACL', 'SETUSER', 'limits', '+mget', '-asking');
    const other = open({ REDIS_URL: node.address, REDIS_AUTH: 'limits:right' });
    await logged(/redis:\/\/127\S+ .* check the permissions of the user \(NOPERM .*asking/);
    await other.close();
    open({ REDIS_URL: node.address, REDIS_AUTH: 'limits:wr0ng' });
    await logged(/it refuses the login; check REDIS_AUTH.*\(WRONGPASS/);
    expect(log.join('\n')).not.toMatch(/wr0ng|right\b/);
    expect(faults).toContain('wrongpass');
  });

  test('a password that changes: existing and new connections use the new password', async () => {
    const folder = new TempDir();
    const path = folder.write('login', 'limits:first');
    await onAll('ACL', 'SETUSER', 'limits', 'on', '>first', '~*', '+@all');
    const store = await openWhole({ REDIS_URL: node.address, REDIS_AUTH_FILE: path });
    await onAll('ACL', 'SETUSER', 'limits', '>second', '<first');
    folder.write('login', 'limits:second');
    const logins = async (one: ClusterNode): Promise<number> =>
      Number(/cmdstat_auth:calls=(\d+)/.exec(String(await one.command('INFO', 'commandstats')))?.[1] ?? 0);
    const before = await Promise.all(cluster.nodes.map(logins));
    await waitFor('all to be logged in again', async () => {
      const now = await Promise.all(cluster.nodes.map(logins));
      return now.every((count, i) => count > (before[i] as number));
    });
    // Lost connections are reopened with it.
    await onAll('CLIENT', 'KILL', 'USER', 'limits');
    await waitFor('all nodes', async () => {
      const tenants = await tenantsOnAll(cluster);
      return store.isComplete && (await take(store, ...tenants)) === 'decided';
    });
    expect(faults.filter((fault) => fault !== 'lost')).toEqual([]);
  });
});

test('TLS', async () => {
  const files = writeTlsFiles();
  // The nodes of the cluster still use clear text among each other.
  const [tlsPort] = (await freePorts(1, BUS_OFFSET)) as [number];
  const args = [...tlsArguments(files, tlsPort), '--tls-cluster', 'yes'];
  const secret = await startCluster({ masters: 1, args });
  const store = await openWhole({
    REDIS_URL: `127.0.0.1:${tlsPort}`,
    ...{ REDIS_TLS: 'true', REDIS_TLS_CACERT: files.ca },
  });
  expect(await take(store, 'a', 'b')).toBe('decided');
  expect(log).toContain(`info: Redis rediss://127.0.0.1:${tlsPort} is up`);

  log = [];
  open({ REDIS_URL: `127.0.0.1:${tlsPort}` });
  await logged(/check .*REDIS_TLS.* \(no node of the Redis Cluster answers: /);
  log = [];
  // A Redis without TLS does not answer a TLS handshake, so the attempt ends with the socket or with a timeout.
  open({ REDIS_URL: secret.url, REDIS_TLS: 'true' });
  await logged(/check .*REDIS_TLS.* \(no node of the Redis Cluster answers: /);
});
