/* Tests REDIS_TYPE=SENTINEL with real Sentinels, masters and replicas. */

import { afterEach, describe, expect, test } from '@jest/globals';
import { StorageError, type TakeResult } from '../../src/limiter/bucket-store.js';
import type { StoreFault } from '../../src/limiter/failure-policy.js';
import { mainRedis, perSecondRedis } from '../../src/server/store/redis-options.js';
import { HUNDRED, takeItem } from '../support/limiter/take-items.js';
import { freePorts } from '../support/process/free-port.js';
import { waitFor } from '../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { commandOf, startSentinel, startSentinelSetup } from '../support/redis/sentinels.js';
import { SingleRedisStore } from '../support/redis/single-stores.js';
import { tlsArguments } from '../support/redis/tls-arguments.js';
import { writeTlsFiles } from '../support/tls/tls-files.js';
import { settingsOf } from '../support/weir/settings.js';

let log: string[] = [];
let faults: StoreFault[] = [];
afterEach(async () => {
  log = [];
  faults = [];
});

/** Starts a Redis, and a Sentinel that monitors it. */
async function startWatchedRedis(): Promise<[RedisServer, RedisServer]> {
  const redis = await startRedis();
  const sentinel = await startSentinel({ masterName: 'mymaster', masterPort: redis.port, quorum: 1 });
  return [redis, sentinel];
}

/** Opens a store that the variables configure. */
function open(environment: Record<string, string>): SingleRedisStore {
  const settings = settingsOf({ REDIS_TYPE: 'SENTINEL', ...environment });
  const isSecond = environment['REDIS_PERSECOND_TYPE'] !== undefined;
  const options = isSecond ? perSecondRedis(settings) : mainRedis(settings);
  return new SingleRedisStore({
    ...options!,
    log: (level, message) => log.push(`${level}: ${message}`),
    observeFault: (fault) => faults.push(fault),
  });
}

const take = async (store: SingleRedisStore): Promise<string> => {
  const result: TakeResult = await store.take([takeItem('a', HUNDRED)], Infinity);
  return result instanceof StorageError ? result.reason : 'decided';
};
const isUpAt = (port: number): boolean =>
  log.some((line) => line.endsWith(`: Redis redis://127.0.0.1:${port} (master mymaster) is up`));

describe('a master with a replica and three Sentinels', () => {
  test('is found at the start, with passwords, and followed through a requested failover', async () => {
    const setup = await startSentinelSetup({
      password: 'master-secret',
      sentinelPassword: 'sentinel-secret',
    });
    const [master, replica] = setup.nodes as [RedisServer, RedisServer];
    const passwords = { REDIS_AUTH: 'master-secret', REDIS_SENTINEL_AUTH: 'sentinel-secret' };
    const wrong = open({ ...passwords, REDIS_URL: setup.url, REDIS_SENTINEL_AUTH: 'wr0ng' });
    await waitFor('the log', () => log.some((line) => line.includes('WRONGPASS')));
    expect(log.at(-1)).toMatch(/no Sentinel announces a master; check .*REDIS_SENTINEL_AUTH \(.*WRONGPASS/);
    expect(wrong.connected).toBe(false);
    await wrong.close();
    const store = open({ ...passwords, REDIS_URL: setup.url });
    await store.reached;
    expect(isUpAt(master.port)).toBe(true);
    expect(await take(store)).toBe('decided');
    const second = open({
      REDIS_TYPE: 'single',
      REDIS_URL: '127.0.0.1:1',
      REDIS_PERSECOND: 'true',
      REDIS_PERSECOND_TYPE: 'sentinel',
      REDIS_PERSECOND_URL: setup.url,
      REDIS_PERSECOND_AUTH: 'default:master-secret',
      REDIS_PERSECOND_SENTINEL_AUTH: 'default:sentinel-secret',
    });
    await second.reached;
    expect(await take(second)).toBe('decided');
    await second.close();

    faults = [];
    await commandOf(setup.sentinels[0]!.port, { password: 'sentinel-secret' }, [
      'SENTINEL',
      'FAILOVER',
      'mymaster',
    ]);
    await waitFor('the new master', () => isUpAt(replica.port));
    expect(await take(store)).toBe('decided');
    // weir left it when the switch was announced, or when it reported that it is a replica.
    expect(faults.filter((fault) => fault === 'moved' || fault === 'readonly')).not.toEqual([]);
    expect(log.join('\n')).not.toMatch(/secret|wr0ng/);
  });

  test('finds the new master after the old one dies together with a Sentinel', async () => {
    const setup = await startSentinelSetup();
    const [master, replica] = setup.nodes as [RedisServer, RedisServer];
    const store = open({ REDIS_URL: setup.url });
    await store.reached;
    await setup.sentinels[0]!.kill();
    await master.kill();
    await waitFor('the loss', () => !store.connected);
    expect(await take(store)).toBe('disconnected');
    await waitFor('the new master', () => isUpAt(replica.port));
    expect(await take(store)).toBe('decided');
    expect(log.join('\n')).toMatch(/no server listens at this address; start Redis, or correct REDIS_URL/);
  });

  test('leaves a master that hangs, and does not return to it when it continues', async () => {
    const setup = await startSentinelSetup();
    const [master, replica] = setup.nodes as [RedisServer, RedisServer];
    const store = open({ REDIS_URL: setup.url, REDIS_TIMEOUT: '100ms' });
    await store.reached;
    master.pause();
    await waitFor('the new master', () => isUpAt(replica.port));
    expect(await take(store)).toBe('decided');
    // The old master considers itself the master until the Sentinels reconfigure it, and keeps its connections.
    master.resume();
    await commandOf(master.port, {}, ['PING']);
    expect(await take(store)).toBe('decided');
    expect(log.at(-1)).toMatch(new RegExp(`:${replica.port} .* is up$`));
  });
});

describe('misleading Sentinels', () => {
  test('a single Sentinel that names a replica causes no decision on the replica', async () => {
    const setup = await startSentinelSetup({ sentinels: 1 });
    const replica = setup.nodes[1] as RedisServer;
    const misleadingSentinel = await startSentinel({
      masterName: 'mymaster',
      masterPort: replica.port,
      quorum: 1,
    });
    open({ REDIS_URL: `mymaster,127.0.0.1:${misleadingSentinel.port}` });
    await waitFor('the log', () => log.length > 0);
    // A Sentinel that monitors a replica eventually finds its master; until then, weir does not write to the replica.
    const isRefused = /it is a replica and does not accept writes; .* \(READONLY You can't write/;
    const isCorrected = new RegExp(
      `announced another master, redis://127.0.0.1:${setup.nodes[0]?.port} |is up$`,
    );
    expect(log[0]).toMatch(new RegExp(`${isRefused.source}|${isCorrected.source}`));
    expect(isUpAt(replica.port)).toBe(false);
  });

  test.each<
    [what: string, url: (ports: { redis: number; sentinel: number; nowhere: number }) => string, says: RegExp]
  >([
    [
      'no Sentinel answers',
      ({ nowhere }) => `mymaster,127.0.0.1:${nowhere},[::1]:${nowhere}`,
      /no Sentinel announces a master; check REDIS_URL .*ECONNREFUSED/,
    ],
    [
      'the Sentinels do not know the master',
      ({ sentinel }) => `mymastre,127.0.0.1:${sentinel}`,
      /no Sentinel announces a master; check REDIS_URL .* invalid reply: null/,
    ],
    [
      'the address belongs to a Redis',
      ({ redis }) => `mymaster,127.0.0.1:${redis}`,
      /no Sentinel announces a master; check REDIS_URL .* unknown command 'sentinel'\)$/,
    ],
  ])('%s', async (_, url, says) => {
    const [nowhere] = (await freePorts(1)) as [number];
    const [redis, sentinel] = await startWatchedRedis();
    const store = open({ REDIS_URL: url({ redis: redis.port, sentinel: sentinel.port, nowhere }) });
    await waitFor('the log', () => log.length > 0);
    expect(log[0]).toMatch(says);
    expect(log[0]).toMatch(
      /^error: Redis mym\w+ \(Sentinels 127\S+.*\) cannot be used, and weir keeps retrying: /,
    );
    expect(faults[0]).toBe('refused');
    expect(store.everReached).toBe(false);
    expect(await take(store)).toBe('disconnected');
  });

  test('a Sentinel instead of a Redis', async () => {
    const [, sentinel] = await startWatchedRedis();
    open({ REDIS_TYPE: 'SINGLE', REDIS_URL: `127.0.0.1:${sentinel.port}` });
    await waitFor('the log', () => log.length > 0);
    expect(log[0]).toMatch(/check whether REDIS_URL is the address of a Redis server/);
  });
});

test('closing ends everything while Sentinels hang', async () => {
  const setup = await startSentinelSetup({ sentinels: 1 });
  setup.sentinels[0]!.pause();
  const store = open({ REDIS_URL: setup.url });
  await store.close();
  expect(store.everReached).toBe(false);
});

test('TLS for Redis and for the Sentinels, by name', async () => {
  const files = writeTlsFiles();
  const [redisPort, sentinelPort] = (await freePorts(2)) as [number, number];
  await startRedis({ args: [...tlsArguments(files, redisPort), '--tls-replication', 'yes'] });
  await startSentinel({
    masterName: 'mymaster',
    masterPort: redisPort,
    quorum: 1,
    lines: [
      ...[`tls-port ${sentinelPort}`, `tls-cert-file ${files.serverCert}`, `tls-key-file ${files.serverKey}`],
      ...[`tls-ca-cert-file ${files.ca}`, 'tls-auth-clients no', 'tls-replication yes'],
    ],
  });
  const store = open({
    REDIS_URL: `mymaster,localhost:${sentinelPort}`,
    REDIS_TLS: 'true',
    REDIS_TLS_CACERT: files.ca,
  });
  await store.reached;
  expect(await take(store)).toBe('decided');
  expect(log.at(-1)).toBe(`info: Redis rediss://127.0.0.1:${redisPort} (master mymaster) is up`);
});
