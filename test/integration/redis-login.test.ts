import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { StorageError } from '../../src/limiter/bucket-store.js';
import { readSettings } from '../../src/server/settings/read-settings.js';
import { mainRedis, perSecondRedis } from '../../src/server/settings/redis-settings.js';
import { parseRedisUrl } from '../../src/storage/redis/connection/redis-address.js';
import type { RedisStoreOptions } from '../../src/storage/redis/redis-store-options.js';
import { REDIS } from '../support/limiter/store-options.js';
import { HUNDRED, takeItem } from '../support/limiter/take-items.js';
import { freePorts } from '../support/process/free-port.js';
import { waitFor } from '../support/process/wait-for.js';
import { RedisAlone } from '../support/redis/redis-alone.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';

// Starting a Redis may take its time on a busy machine.
jest.setTimeout(60_000);

let redis: RedisServer | undefined;
let store: RedisAlone | undefined;
let log: string[];
let folder: string;

beforeEach(() => {
  log = [];
  folder = mkdtempSync(join(tmpdir(), 'weir-login-'));
});
afterEach(async () => {
  await store?.close();
  await redis?.stop();
  store = undefined;
  redis = undefined;
  rmSync(folder, { recursive: true, force: true });
});

function open(url: string, options: Partial<RedisStoreOptions> = {}): RedisAlone {
  store = new RedisAlone({
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
  expect(await take()).toMatchObject([{ limited: false }]);
};

/** Waits for a line of the log, and holds the store to being away. */
async function expectAway(pattern: RegExp): Promise<void> {
  await waitFor(`${pattern} in the log`, () => log.some((line) => pattern.test(line)));
  expect(take()).toBeInstanceOf(StorageError);
  expect([store!.connected, store!.everReached]).toEqual([false, false]);
}

describe('passwords', () => {
  test('the right one, with and without a user', async () => {
    redis = await startRedis({ args: ['--requirepass', 's3cret'] });
    open(`redis://:s3cret@127.0.0.1:${redis.port}`);
    await expectDecided();
    await store!.close();
    open(`redis://default:s3cret@127.0.0.1:${redis.port}`);
    await expectDecided();
  });

  test('a wrong one keeps the store away; no log line holds it', async () => {
    redis = await startRedis({ args: ['--requirepass', 's3cret'] });
    open(`redis://:wr0ng@127.0.0.1:${redis.port}`);
    await expectAway(
      /^error: Redis redis:\/\/127.*:\d+ refuses the login: correct the user or the password in REDIS_URL \(WRONG/,
    );
    expect(log.join('\n')).not.toMatch(/wr0ng|s3cret/);
    // Retrying says nothing new.
    expect(log.length).toBeLessThanOrEqual(2);
  });

  test('one that Redis repeats because its AUTH has another name; no log line holds it', async () => {
    redis = await startRedis({ args: ['--rename-command', 'AUTH', 'ANOTHER'] });
    open(`redis://weir:s3cret@127.0.0.1:${redis.port}`);
    await expectAway(/knows no AUTH; .* correct REDIS_URL \(ERR unknown command 'auth'\)$/);
    expect(log.join('\n')).not.toContain('s3cret');
  });

  test('none where one is needed', async () => {
    redis = await startRedis({ args: ['--requirepass', 's3cret'] });
    open(`redis://127.0.0.1:${redis.port}`);
    await expectAway(/wants a login: set REDIS_AUTH or REDIS_AUTH_FILE to its password, .*\(NOAUTH/);
  });

  test.each<[given: Record<string, string>, words: string]>([
    [{ REDIS_AUTH: 'wr0ng' }, 'password in REDIS_AUTH, which is read as user:password'],
    [{ REDIS_AUTH_FILE: 'wr0ng' }, 'password in the file of REDIS_AUTH_FILE, which'],
    [{ REDIS_PERSECOND_AUTH: 'wr0ng' }, 'password in REDIS_PERSECOND_AUTH, which'],
    [{ REDIS_PERSECOND_URL: 'wr0ng' }, 'password in REDIS_PERSECOND_URL ('],
    [{ REDIS_PERSECOND: 'true' }, 'wants a login: set REDIS_PERSECOND_AUTH or REDIS_PERSECOND_AUTH_FILE to'],
  ])('the line names the variable that holds the wrong one: %j', async (given, words) => {
    redis = await startRedis({ args: ['--requirepass', 's3cret'] });
    const address = `127.0.0.1:${redis.port}`;
    const environment: Record<string, string> = {
      REDIS_URL: address,
      REDIS_PERSECOND: 'true',
      REDIS_PERSECOND_URL: address,
      ...given,
    };
    if (given['REDIS_AUTH_FILE'] !== undefined) {
      environment['REDIS_AUTH_FILE'] = join(folder, 'password');
      writeFileSync(environment['REDIS_AUTH_FILE'], 'wr0ng');
    }
    if (given['REDIS_PERSECOND_URL'] !== undefined)
      environment['REDIS_PERSECOND_URL'] = `redis://:wr0ng@${address}`;
    const read = readSettings(environment);
    if (!read.ok) throw new Error(read.errors.join('\n'));
    const isSecond = Object.keys(given)[0]?.startsWith('REDIS_PERSECOND');
    const options = isSecond ? perSecondRedis(read.settings) : mainRedis(read.settings);
    store = new RedisAlone({ ...options!, log: (level, message) => log.push(`${level}: ${message}`) });
    await waitFor(`"${words}" in the log`, () => log.some((line) => line.includes(words)));
    expect(log.join('\n')).not.toMatch(/wr0ng|s3cret/);
  });

  test('a user without the rights', async () => {
    redis = await startRedis();
    const admin = new Redis(redis.port, '127.0.0.1');
    await admin.acl('SETUSER', 'weir', 'on', '>pw', '~weir:1:*', '-@all');
    open(`redis://weir:pw@127.0.0.1:${redis.port}`);
    await expectAway(
      /does not let the user in REDIS_URL do what weir does: run ACL SETUSER with .* \+evalsha .* \(NOPERM/,
    );
    admin.disconnect();
  });
});

test('a database of its own, also after a reconnect', async () => {
  redis = await startRedis();
  open(`redis://127.0.0.1:${redis.port}/3`);
  await expectDecided();
  const admin = new Redis(redis.port, '127.0.0.1', { db: 3 });
  expect((await admin.keys('weir:*:*a')).length).toBe(1);
  await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await waitFor('the loss', () => store!.connected === false || log.length > 1);
  await waitFor('the return', () => store!.connected);
  expect(await take()).toMatchObject([{ limited: false }]);
  await admin.select(0);
  expect(await admin.keys('*')).toEqual([]);
  admin.disconnect();
});

test('a database that is not there keeps the store away, rather than use another', async () => {
  redis = await startRedis();
  open(`redis://127.0.0.1:${redis.port}/99`);
  await expectAway(/DB index is out of range/);
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
  /** A certificate that vouches for itself, for localhost and 127.0.0.1. */
  function certificate(): { certFile: string; keyFile: string; ca: string } {
    const certFile = join(folder, 'cert.pem');
    const keyFile = join(folder, 'key.pem');
    execFileSync(
      'openssl',
      [
        ...[
          'req',
          '-x509',
          '-newkey',
          'ec',
          '-pkeyopt',
          'ec_paramgen_curve:prime256v1',
          '-nodes',
          '-days',
          '2',
        ],
        ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'],
        ...['-keyout', keyFile, '-out', certFile],
      ],
      { stdio: 'ignore' },
    );
    return { certFile, keyFile, ca: readFileSync(certFile, 'utf8') };
  }

  /** Starts a Redis with TLS; returns its address and certificate. */
  async function startTls(): Promise<{ url: string; ca: string }> {
    const { certFile, keyFile, ca } = certificate();
    const [tlsPort] = await freePorts(1);
    redis = await startRedis({
      args: [
        ...['--tls-port', String(tlsPort), '--tls-cert-file', certFile, '--tls-key-file', keyFile],
        ...['--tls-ca-cert-file', certFile, '--tls-auth-clients', 'no'],
      ],
    });
    return { url: `rediss://127.0.0.1:${tlsPort}`, ca };
  }

  test('with the certificate known', async () => {
    const { url, ca } = await startTls();
    open(url, { tls: { ca } });
    await expectDecided();
  });

  test('with an unknown certificate the store stays away, unless told not to mind', async () => {
    const { url } = await startTls();
    open(url);
    await expectAway(
      /certificate is not known; set REDIS_TLS_CACERT to the file with its issuer \(self-signed/,
    );
    await store!.close();
    open(url, { tls: { rejectUnauthorized: false } });
    await expectDecided();
  });

  test('with a certificate for another name the store stays away', async () => {
    const { url, ca } = await startTls();
    open(url, { tls: { ca, servername: 'redis.example' } });
    await expectAway(
      /certificate is for another name; .* REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=true \(.*altnames/,
    );
  });

  test('against a Redis without TLS the store stays away', async () => {
    // Also one that wants a password, which is not sent to it in clear text.
    for (const args of [[], ['--requirepass', 's3cret']]) {
      await store?.close();
      await redis?.stop();
      log = [];
      redis = await startRedis({ args });
      open(`rediss://:s3cret@127.0.0.1:${redis.port}`);
      await expectAway(
        /it speaks clear text, and was asked over TLS; write redis:\/\/ in REDIS_URL, and do not set REDIS_TLS$/,
      );
      // Nothing else is told of it, such as ETIMEDOUT.
      expect(log).toHaveLength(1);
    }
  });

  test('in clear text against a Redis with TLS the store stays away', async () => {
    const { url } = await startTls();
    open(url.replace('rediss:', 'redis:'));
    await expectAway(
      /it speaks TLS, and was asked in clear text; write rediss:\/\/ in REDIS_URL, or set REDIS_TLS=true$/,
    );
    expect(log).toHaveLength(1);
  });

  test('settings that cannot be used are an error at start', () => {
    expect(() => open('rediss://127.0.0.1:1', { tls: { cert: 'no certificate', key: 'no key' } })).toThrow();
  });
});

describe('a Redis that will not do', () => {
  test('one that evicts buckets is warned of', async () => {
    redis = await startRedis({ args: ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'] });
    open(`127.0.0.1:${redis.port}`);
    await expectDecided();
    await waitFor('a warning', () => log.some((line) => /^warn: .*maxmemory-policy allkeys-lru/.test(line)));
  });

  test('one that is full keeps the store away until it has room', async () => {
    redis = await startRedis();
    open(`127.0.0.1:${redis.port}`, { breakerFailures: 2 });
    await expectDecided();
    const admin = new Redis(redis.port, '127.0.0.1');
    await admin.config('SET', 'maxmemory', '1');
    const reasons: string[] = [];
    for (let i = 0; i < 3; i++) {
      const result = await take();
      if (result instanceof StorageError) reasons.push(result.reason);
    }
    expect(reasons).toEqual(['rejected', 'rejected', 'breaker_open']);
    await admin.config('SET', 'maxmemory', '0');
    await waitFor('the return', () => store!.connected);
    expect(await take()).toMatchObject([{ limited: false }]);
    admin.disconnect();
  });

  test('a replica cannot be written to: the store looks again for a master', async () => {
    const [nowhere] = await freePorts(1);
    redis = await startRedis();
    open(`127.0.0.1:${redis.port}`);
    await expectDecided();
    const admin = new Redis(redis.port, '127.0.0.1');
    await admin.replicaof('127.0.0.1', String(nowhere));
    const result = await take();
    // Redis did nothing, so the call waited for another one, in vain.
    expect((result as StorageError).reason).toBe('disconnected');
    await waitFor('the store to go away', () => !store!.connected);
    await admin.replicaof('NO', 'ONE');
    await waitFor('the return', () => store!.connected);
    expect(await take()).toMatchObject([{ limited: false }]);
    admin.disconnect();
  });

  test('a user who may do nothing but take still can: no INFO, no SCRIPT, no CLIENT', async () => {
    redis = await startRedis();
    const admin = new Redis(redis.port, '127.0.0.1');
    const rights = ['on', '>pw', '~weir:1:*', '-@all', '+evalsha', '+eval', '+mget', '+set', '+del', '+time'];
    await admin.acl('SETUSER', 'weir', ...rights);
    open(`redis://weir:pw@127.0.0.1:${redis.port}`);
    await expectDecided();
    admin.disconnect();
  });
});
