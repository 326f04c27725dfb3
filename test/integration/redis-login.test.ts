import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { StorageError } from '../../src/limiter/bucket-store.js';
import { mainRedis, perSecondRedis } from '../../src/server/store/redis-options.js';
import { parseRedisUrl } from '../../src/storage/redis/connection/redis-address.js';
import type { RedisStoreOptions } from '../../src/storage/redis/redis-store-options.js';
import { REDIS } from '../support/limiter/store-options.js';
import { HUNDRED, takeItem } from '../support/limiter/take-items.js';
import { freePorts } from '../support/process/free-port.js';
import { untilLogged, waitFor } from '../support/process/wait-for.js';
import { redisClient } from '../support/redis/redis-client.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { SingleRedisStore } from '../support/redis/single-stores.js';
import { tlsArguments } from '../support/redis/tls-arguments.js';
import { type TlsFiles, writeTlsFiles } from '../support/tls/tls-files.js';
import { settingsOf } from '../support/weir/settings.js';

let redis: RedisServer | undefined;
let store: SingleRedisStore | undefined;
let log: string[];
let folder: string;
let files: TlsFiles | undefined;

beforeEach(() => {
  log = [];
  folder = mkdtempSync(join(tmpdir(), 'weir-login-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function open(url: string, options: Partial<RedisStoreOptions> = {}): SingleRedisStore {
  store = new SingleRedisStore({
    ...REDIS,
    address: parseRedisUrl(url),
    log: (level, message) => log.push(`${level}: ${message}`),
    ...options,
  });
  return store;
}

const take = () => store!.take([takeItem('a', HUNDRED)], Infinity);
const expectDecided = async () => {
  await store!.reached;
  expect(await take()).toMatchObject([{ overLimit: false }]);
};

/** Waits for a log line, and expects that the store is unavailable. */
async function expectUnavailable(pattern: RegExp): Promise<void> {
  await untilLogged(log, pattern);
  expect(take()).toBeInstanceOf(StorageError);
  expect([store!.connected, store!.everReached]).toEqual([false, false]);
}

describe('passwords', () => {
  test('the right password logs in, with and without a user', async () => {
    redis = await startRedis({ args: ['--requirepass', 's3cret'] });
    open(`redis://:s3cret@127.0.0.1:${redis.port}`);
    await expectDecided();
    await store!.close();
    open(`redis://default:s3cret@127.0.0.1:${redis.port}`);
    await expectDecided();
  });

  test('a wrong password makes the store unavailable, and is in no log line', async () => {
    redis = await startRedis({ args: ['--requirepass', 's3cret'] });
    open(`redis://:wr0ng@127.0.0.1:${redis.port}`);
    await expectUnavailable(
      /^error: Redis redis:\/\/127.*: it refuses the login; check .* the login in REDIS_URL \(WRONGPASS/,
    );
    expect(log.join('\n')).not.toMatch(/wr0ng|s3cret/);
    // Retries log nothing new.
    expect(log.length).toBeLessThanOrEqual(2);
  });

  test('a password that Redis repeats because its AUTH has another name is in no log line', async () => {
    redis = await startRedis({ args: ['--rename-command', 'AUTH', 'ANOTHER'] });
    open(`redis://weir:s3cret@127.0.0.1:${redis.port}`);
    await expectUnavailable(/ REDIS_URL.* \(ERR unknown command 'auth'\)$/);
    expect(log.join('\n')).not.toContain('s3cret');
  });

  test('a missing password makes the store unavailable', async () => {
    redis = await startRedis({ args: ['--requirepass', 's3cret'] });
    open(`redis://127.0.0.1:${redis.port}`);
    await expectUnavailable(/it refuses the login; check REDIS_AUTH, .*\(NOAUTH/);
  });

  test.each<[given: Record<string, string>, variable: string]>([
    [{ REDIS_AUTH: 'wr0ng' }, 'REDIS_AUTH'],
    [{ REDIS_PERSECOND_AUTH: 'wr0ng' }, 'REDIS_PERSECOND_AUTH'],
    [{ REDIS_PERSECOND_URL: 'wr0ng' }, 'REDIS_PERSECOND_AUTH'],
    [{ REDIS_PERSECOND: 'true' }, 'REDIS_PERSECOND_AUTH'],
  ])('the log line names the variables of the login: %j', async (given, variable) => {
    const words = `it refuses the login; check ${variable}`;
    redis = await startRedis({ args: ['--requirepass', 's3cret'] });
    const address = `127.0.0.1:${redis.port}`;
    const environment: Record<string, string> = {
      REDIS_URL: address,
      REDIS_PERSECOND: 'true',
      REDIS_PERSECOND_URL: address,
      ...given,
    };
    if (given['REDIS_PERSECOND_URL'] !== undefined)
      environment['REDIS_PERSECOND_URL'] = `redis://:wr0ng@${address}`;
    const settings = settingsOf(environment);
    const isSecond = Object.keys(given)[0]?.startsWith('REDIS_PERSECOND');
    const options = isSecond ? perSecondRedis(settings) : mainRedis(settings);
    store = new SingleRedisStore({ ...options!, log: (level, message) => log.push(`${level}: ${message}`) });
    await waitFor(`"${words}" in the log`, () => log.some((line) => line.includes(words)));
    expect(log.join('\n')).not.toMatch(/wr0ng|s3cret/);
  });

  test('a user without the required rights makes the store unavailable', async () => {
    redis = await startRedis();
    const admin = redisClient(redis.port);
    await admin.acl('SETUSER', 'weir', 'on', '>pw', '~weir:1:*', '-@all');
    open(`redis://weir:pw@127.0.0.1:${redis.port}`);
    await expectUnavailable(/it refuses a command; check the permissions of the user \(NOPERM/);
  });
});

test('a separate database is selected, also after a reconnect', async () => {
  redis = await startRedis();
  open(`redis://127.0.0.1:${redis.port}/3`);
  await expectDecided();
  const admin = redisClient(redis.port, { db: 3 });
  expect((await admin.keys('weir:*:*a')).length).toBe(1);
  await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await waitFor('the loss', () => store!.connected === false || log.length > 1);
  await waitFor('the return', () => store!.connected);
  expect(await take()).toMatchObject([{ overLimit: false }]);
  await admin.select(0);
  expect(await admin.keys('*')).toEqual([]);
});

test('a missing database makes the store unavailable, and no other one is used', async () => {
  redis = await startRedis();
  open(`redis://127.0.0.1:${redis.port}/99`);
  await expectUnavailable(/DB index is out of range/);
});

test('a Unix domain socket', async () => {
  const path = join(folder, 'redis.sock');
  redis = await startRedis({ args: ['--unixsocket', path] });
  open(path);
  await expectDecided();
  await store!.close();
  open(`unix://${path}?db=2`);
  await expectDecided();
});

describe('TLS', () => {
  /** Starts a Redis with TLS; returns its address and the certificate of the issuer. */
  async function startTls(): Promise<{ url: string; ca: string }> {
    files = writeTlsFiles();
    const [port] = (await freePorts(1)) as [number];
    redis = await startRedis({ args: tlsArguments(files, port) });
    return { url: `rediss://127.0.0.1:${port}`, ca: readFileSync(files.ca, 'utf8') };
  }

  test('with an untrusted certificate, the store is unavailable, unless verification is off', async () => {
    const { url } = await startTls();
    open(url);
    await expectUnavailable(/ check REDIS_TLS and the certificates \(self-signed/);
    await store!.close();
    open(url, { tls: { rejectUnauthorized: false } });
    await expectDecided();
  });

  test('with a certificate for another name, the store is unavailable', async () => {
    const { url, ca } = await startTls();
    open(url, { tls: { ca, servername: 'redis.example' } });
    await expectUnavailable(/ check REDIS_TLS and the certificates \(.*altnames/);
  });

  test('with a Redis without TLS, the store is unavailable', async () => {
    // This includes a Redis with a password, which weir must not send in clear text.
    for (const args of [[], ['--requirepass', 's3cret']]) {
      await store?.close();
      await redis?.stop();
      log = [];
      redis = await startRedis({ args });
      open(`rediss://:s3cret@127.0.0.1:${redis.port}`, { timeoutMicros: 500_000 });
      await expectUnavailable(/ REDIS_TLS/);
      // Whatever the reason, such as ETIMEDOUT, the log names the setting.
      for (const line of log) expect(line).toMatch(/ REDIS_TLS/);
    }
  });

  test('in clear text with a Redis that uses TLS, the store is unavailable', async () => {
    const { url } = await startTls();
    open(url.replace('rediss:', 'redis:'));
    await expectUnavailable(/ REDIS_TLS/);
    for (const line of log) expect(line).toMatch(/ REDIS_TLS/);
  });

  test('unusable settings are an error at the start', () => {
    expect(() => open('rediss://127.0.0.1:1', { tls: { cert: 'no certificate', key: 'no key' } })).toThrow();
  });
});

describe('an unsuitable Redis', () => {
  test('a user with only the rights for takes can take: no INFO, SCRIPT or CLIENT', async () => {
    redis = await startRedis();
    const admin = redisClient(redis.port);
    const rights = ['on', '>pw', '~weir:1:*', '-@all', '+evalsha', '+eval', '+mget', '+set', '+del', '+time'];
    await admin.acl('SETUSER', 'weir', ...rights);
    open(`redis://weir:pw@127.0.0.1:${redis.port}`);
    await expectDecided();
  });
});
