/* Provokes every possible error of a real Redis: tests what weir does, logs and counts, and that it recovers. */

import { rmSync } from 'node:fs';
import { beforeEach, expect, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { StorageError, type TakeResult } from '../../src/limiter/bucket-store.js';
import type { StoreFault } from '../../src/limiter/failure-policy.js';
import { parseRedisUrl } from '../../src/storage/redis/connection/redis-address.js';
import { REDIS } from '../support/limiter/store-options.js';
import { HUNDRED, takeItem } from '../support/limiter/take-items.js';
import { freePorts } from '../support/process/free-port.js';
import { waitFor } from '../support/process/wait-for.js';
import { redisClient } from '../support/redis/redis-client.js';
import { type RedisServer, type StartRedisOptions, startRedis } from '../support/redis/redis-server.js';
import { SingleRedisStore } from '../support/redis/single-stores.js';

let redis: RedisServer;
let admin: Redis;
let store: SingleRedisStore;
let log: string[];
let faults: StoreFault[];

beforeEach(() => {
  log = [];
  faults = [];
});

async function open(options?: StartRedisOptions): Promise<void> {
  redis = await startRedis(options);
  connect();
  await store.reached;
}

function connect(): void {
  admin = redisClient(redis.port, { retryStrategy: () => 50 });
  admin.on('error', () => {});
  store = new SingleRedisStore({
    ...REDIS,
    address: parseRedisUrl(`127.0.0.1:${redis.port}`),
    log: (level, message) => log.push(`${level}: ${message}`),
    observeFault: (fault) => faults.push(fault),
  });
}

const take = async (): Promise<string> => {
  const result: TakeResult = await store.take([takeItem('a', HUNDRED)], Infinity);
  return result instanceof StorageError ? result.reason : 'decided';
};

/**
 * Expects that the first call of an outage is refused, all others are answered without Redis, and the log contains
 * instructions.
 */
async function expectOutage(fault: StoreFault, sentence: RegExp): Promise<void> {
  expect(await take()).toBe('rejected');
  expect(store.connected).toBe(false);
  expect(await take()).toBe('breaker_open');
  expect(faults[0]).toBe(fault);
  expect(new Set(faults)).toEqual(new Set([fault]));
  const lines = log.filter((line) => line.startsWith('error:'));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(sentence);
}

async function expectRecovery(): Promise<void> {
  await waitFor('the return', () => store.connected);
  expect(await take()).toBe('decided');
  expect(log.at(-1)).toMatch(/^warn: Redis .* is up$/);
}

/** Runs a script that ends only when it is killed. */
async function busyScript(): Promise<void> {
  // A client with retries would run the script again after a restart.
  const client = redisClient(redis.port, { retryStrategy: () => null });
  client.on('error', () => {});
  await client.eval('while true do end', 0).catch(() => undefined);
}

async function isListening(port: number): Promise<boolean> {
  const client = redisClient(port, {
    enableReadyCheck: false,
    lazyConnect: true,
    retryStrategy: () => null,
  });
  client.on('error', () => {});
  return client.connect().then(
    () => {
      return true;
    },
    () => false,
  );
}

async function untilBusy(): Promise<void> {
  const other = redisClient(redis.port, { enableReadyCheck: false, maxRetriesPerRequest: 0 });
  await waitFor('the script to be noticed', () =>
    other.get('x').then(
      () => false,
      (error: Error) => error.message.startsWith('BUSY'),
    ),
  );
}

test("BUSY: another client's script runs", async () => {
  await open({ args: ['--busy-reply-threshold', '50'] });
  const killer = redisClient(redis.port);
  await killer.ping();
  const script = busyScript();
  await untilBusy();
  await expectOutage('loading', /it accepts no commands or no writes at the moment; check its log \(BUSY/);
  await killer.script('KILL');
  await script;
  await expectRecovery();
});

test('MISCONF: Redis cannot write to its disk', async () => {
  await open();
  await admin.config('SET', 'save', '3600 1');
  await admin.set('k', 'v');
  const folder = redis.folder;
  rmSync(folder, { recursive: true });
  await admin.bgsave();
  await waitFor('the failure to be seen', async () =>
    (await admin.info('persistence')).includes('rdb_last_bgsave_status:err'),
  );
  await expectOutage('loading', /it accepts no commands or no writes at the moment; check its log \(MISCONF/);
  await admin.config('SET', 'stop-writes-on-bgsave-error', 'no');
  await expectRecovery();
});

test('MASTERDOWN and READONLY: a replica', async () => {
  const [nowhere] = await freePorts(1);
  await open();
  await admin.config('SET', 'replica-serve-stale-data', 'no');
  await admin.replicaof('127.0.0.1', String(nowhere));
  // A refused call waits for another master until its deadline.
  expect(await take()).toBe('disconnected');
  expect(faults[0]).toBe('readonly');
  expect(log.at(-1)).toMatch(/it is a replica/);
  await admin.replicaof('NO', 'ONE');
  await expectRecovery();
});

test('LOADING: Redis loads its data from disk', async () => {
  redis = await startRedis({ args: ['--appendonly', 'yes', '--key-load-delay', '300'] });
  const writer = redisClient(redis.port, { enableReadyCheck: false, retryStrategy: () => null });
  writer.on('error', () => {});
  for (let i = 0; i < 10_000; i++) void writer.set(`k${i}`, 'v');
  await writer.ping();
  await redis.kill();
  const ready = redis.restart();
  await waitFor('it to listen', () => isListening(redis.port));
  connect();
  await waitFor('the log', () => log.some((line) => line.includes('LOADING')));
  expect(log.find((line) => line.includes('LOADING'))).toMatch(
    /it accepts no commands or no writes at the moment; check its log/,
  );
  expect(faults).toContain('loading');
  expect(await take()).toBe('disconnected');
  await ready;
  await expectRecovery();
});

test('OOM: a series of failures opens the breaker, because some of the calls could succeed', async () => {
  await open();
  await admin.config('SET', 'maxmemory', '1');
  for (let i = 0; i < 4; i++) expect(await take()).toBe('rejected');
  // A success ends the series.
  await admin.config('SET', 'maxmemory', '0');
  expect(await take()).toBe('decided');
  await admin.config('SET', 'maxmemory', '1');
  for (let i = 0; i < 4; i++) expect(await take()).toBe('rejected');
  expect(store.connected).toBe(true);
  expect(await take()).toBe('rejected');
  expect(await take()).toBe('breaker_open');
  expect(new Set(faults)).toEqual(new Set(['oom']));
  expect(log.at(-1)).toMatch(/has reached its maxmemory \(OOM/);
  await admin.config('SET', 'maxmemory', '0');
  await expectRecovery();
});

test('NOSCRIPT: Redis forgets the script, weir loads it again, and no call fails', async () => {
  await open();
  await admin.script('FLUSH');
  expect(await take()).toBe('decided');
  expect(faults).toEqual([]);
});

test('NOAUTH: Redis begins to require a password', async () => {
  await open();
  await admin.config('SET', 'requirepass', 'new');
  await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await waitFor('the log', () => log.some((line) => line.includes('(NOAUTH')));
  expect(faults).toContain('wrongpass');
  await admin.config('SET', 'requirepass', '');
  await expectRecovery();
});
