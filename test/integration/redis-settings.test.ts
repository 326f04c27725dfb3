/* Tests REDIS_*, REDIS_PERSECOND_* and related variables with real Redis servers. */

import { join, relative } from 'node:path';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { STATUS } from '../../src/grpc/grpc-server.js';
import type { Store } from '../../src/server/store/store.js';
import type { Logger } from '../../src/telemetry/logger.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { HUNDRED, takeItem } from '../support/limiter/take-items.js';
import { takeFrom } from '../support/limiter/test-stores.js';
import { descriptor } from '../support/policy/decider.js';
import { freePorts } from '../support/process/free-port.js';
import { httpRequest } from '../support/process/http-client.js';
import { TempDir } from '../support/process/temp-dir.js';
import { untilLogged, waitFor } from '../support/process/wait-for.js';
import { redisClient } from '../support/redis/redis-client.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { tlsArguments } from '../support/redis/tls-arguments.js';
import { CertificateAuthority } from '../support/tls/certificates.js';
import { CommandHost } from '../support/weir/commands.js';
import { openStoreOf } from '../support/weir/settings.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const POLICY = `
domain: d
descriptors:
  - { key: second, rate_limit: { unit: second, requests_per_unit: 1000000 } }
  - { key: never, rate_limit: { unit: second, requests_per_unit: 0 } }
  - { key: year, rate_limit: { unit: year, requests_per_unit: 3 } }
  - { key: tokens, rate_limit: { token_bucket: { max_tokens: 5, fill_interval: 1h } } }
`;

const host = new CommandHost();

/** Opens the store of a server with these settings in this process, and collects its log lines in `log`. */
function open(environment: Record<string, string>, log: string[] = []): Store {
  const keep = (line: string): unknown => log.push(line);
  const logger = { debug: keep, info: keep, warn: keep, error: keep } as unknown as Logger;
  return openStoreOf(environment, logger);
}

/** Waits until the store is up, and expects that it decides. */
async function expectDecided(store: Store): Promise<void> {
  await waitFor('Redis', () => store.up());
  expect(await takeFrom(store.buckets, takeItem('a', HUNDRED))).toMatchObject([{ overLimit: false }]);
}

const asks = (...keys: string[]) => keys.map((key) => descriptor([`${key}=v`]));
async function code(client: RlsClient, ...keys: string[]): Promise<number | undefined> {
  const reply = await client.ask('d', asks(...keys));
  return reply.code === STATUS.OK ? reply.response!.overallCode : undefined;
}

describe('connections to Redis', () => {
  test('accept a Unix domain socket with a relative path', async () => {
    const redis = await startRedis({ args: ['--unixsocket', 'redis.sock'] });
    const path = relative(process.cwd(), join(redis.folder, 'redis.sock'));
    await expectDecided(open({ REDIS_SOCKET_TYPE: 'unix', REDIS_URL: path }));
  });

  test.each<[Record<string, string>, RegExp]>([
    [
      { REDIS_SOCKET_TYPE: 'unix', REDIS_URL: 'redis://:s3cret@redis:6379' },
      /^weir: REDIS_URL, REDIS_SOCKET_TYPE: .* type is unix, but a redis:\/\/ URL is not a Unix domain socket/m,
    ],
    [
      { REDIS_SOCKET_TYPE: 'tcp', REDIS_URL: '/run/redis.sock' },
      /^weir: REDIS_URL, REDIS_SOCKET_TYPE: .*the socket type is tcp; use host:port, or set the socket type to unix$/m,
    ],
    [
      { REDIS_TLS: 'true', REDIS_URL: '/run/redis.sock' },
      /^weir: REDIS_URL, REDIS_TLS: .*does not support TLS/m,
    ],
    [
      { REDIS_PERSECOND: 'true', REDIS_PERSECOND_URL: 'http://h', REDIS_URL: 'h:1' },
      /^weir: REDIS_PERSECOND_URL: .*unknown scheme/m,
    ],
    [
      { REDIS_URL: 'h:1', REDIS_AUTH_FILE: '/nowhere/s3cret' },
      /^weir: REDIS_AUTH_FILE: cannot read \/nowhere\/s3cret: /m,
    ],
    [
      { REDIS_URL: 'h:1', REDIS_PERSECOND: '1', REDIS_PERSECOND_AUTH_FILE: '/nowhere/s3cret' },
      /^weir: REDIS_PERSECOND_AUTH_FILE: cannot read /m,
    ],
    [
      { REDIS_URL: 'h:1', CACHE_KEY_PREFIX: '{app}:' },
      /^weir: CACHE_KEY_PREFIX: .*choose a prefix without "\{"/m,
    ],
    [
      { REDIS_URL: 'h:1', REDIS_TLS: '1', REDIS_TLS_CLIENT_CERT: '/nowhere' },
      /^weir: REDIS_TLS_CLIENT_KEY: .*needs its key/m,
    ],
    [
      { REDIS_URL: 'h:1', REDIS_TLS: '1', REDIS_TLS_CACERT: '/nowhere' },
      /^weir: REDIS_TLS_CACERT: cannot read/m,
    ],
  ])('are refused at the start for %j', async (env, line) => {
    const { code: exitCode, stderr } = await host.run({ args: ['serve'], folder: '/', environment: env });
    expect([exitCode, stderr]).toEqual([1, expect.stringMatching(line)]);
    expect(stderr).not.toMatch(/:s3cret@/);
  });
});

test('REDIS_TLS_SKIP_HOSTNAME_VERIFICATION accepts another name, but no unknown issuer', async () => {
  const authority = new CertificateAuthority();
  const { cert, key } = authority.issue('DNS:redis.test');
  const folder = new TempDir();
  const ca = folder.write('ca.pem', authority.cert);
  const files = { ca, serverCert: folder.write('cert.pem', cert), serverKey: folder.write('key.pem', key) };
  const [port] = (await freePorts(1)) as [number];
  await startRedis({ args: tlsArguments(files, port) });
  const env = {
    REDIS_URL: `127.0.0.1:${port}`,
    REDIS_TLS: 'true',
    REDIS_TLS_SKIP_HOSTNAME_VERIFICATION: 'true',
  };
  await expectDecided(open({ ...env, REDIS_TLS_CACERT: ca }));
  const unknown: string[] = [];
  open(env, unknown);
  await untilLogged(unknown, /cannot be used.*certificate/);
});

describe('a second Redis for windows of a second', () => {
  let main: RedisServer;
  let second: RedisServer;
  let server: WeirServer;
  let client: RlsClient;
  beforeAll(async () => {
    main = await startRedis();
    second = await startRedis({ args: ['--requirepass', 'pw'] });
    server = await startWeir({
      policy: POLICY,
      env: {
        REDIS_URL: `127.0.0.1:${main.port}`,
        REDIS_PERSECOND: 'true',
        REDIS_PERSECOND_SOCKET_TYPE: 'tcp',
        REDIS_PERSECOND_URL: `127.0.0.1:${second.port}`,
        REDIS_PERSECOND_AUTH: 'pw',
        REDIS_HEALTH_CHECK_ACTIVE_CONNECTION: 'true',
      },
    });
    client = new RlsClient(server.grpcPort);
  });
  beforeEach(async () => {
    await redisClient(main.port).flushall();
    await redisClient(second.port, { password: 'pw' }).flushall();
  });

  test('fails its own limits while it is unavailable, and health covers both', async () => {
    const health = async () => (await httpRequest(server.httpPort, '/healthcheck')).status;
    expect(await health()).toBe(200);
    await second.kill();
    await waitFor('health to follow', async () => (await health()) === 500);
    expect(await code(client, 'second')).toBeUndefined();
    expect(await code(client, 'second', 'tokens')).toBeUndefined();
    expect(await code(client, 'tokens')).toBe(CODE.OK);
    await second.restart();
    await waitFor('health to return', async () => (await health()) === 200);
    expect(await code(client, 'second', 'tokens')).toBe(CODE.OK);
  });
});

test('LOCAL_CACHE_SIZE_IN_BYTES repeats denials of windows uncounted, also while Redis is unavailable', async () => {
  const redis = await startRedis();
  const server = await startWeir({
    policy: POLICY,
    env: { REDIS_URL: `127.0.0.1:${redis.port}`, LOCAL_CACHE_SIZE_IN_BYTES: '1000000' },
  });
  const client = new RlsClient(server.grpcPort);
  for (let i = 0; i < 3; i++) expect(await code(client, 'year')).toBe(CODE.OK);
  for (let i = 0; i < 5; i++) expect(await code(client, 'year')).toBe(CODE.OVER_LIMIT);
  const admin = redisClient(redis.port);
  const key = (await admin.keys('*year*'))[0] as string;
  expect(await admin.get(key)).toMatch(/^w1:\d+:4:\d+$/);
  await redis.kill();
  await waitFor('Redis to be away', () => server.log().some(({ msg }) => /cannot be used/.test(String(msg))));
  expect(await code(client, 'year')).toBe(CODE.OVER_LIMIT);
  expect(await code(client, 'tokens')).toBeUndefined();
});

describe('REDIS_STARTUP_MAX_ELAPSED_TIME', () => {
  test.each([
    ['one process', '1'],
    ['workers', '2'],
  ])('ends %s that did not reach Redis', async (_name, workers) => {
    const [nowhere, grpc, http, debug] = await freePorts(4);
    const environment = {
      GRPC_HOST: '127.0.0.1',
      GRPC_PORT: String(grpc),
      HOST: '127.0.0.1',
      PORT: String(http),
      DEBUG_PORT: String(debug),
      REDIS_URL: `127.0.0.1:${nowhere}`,
      REDIS_STARTUP_INITIAL_INTERVAL: '10ms',
      REDIS_STARTUP_MAX_INTERVAL: '20ms',
      REDIS_STARTUP_MAX_ELAPSED_TIME: '300ms',
      WORKERS: workers,
    };
    const { code: exitCode, stderr } = await host.run({ args: ['serve'], folder: '/', environment });
    expect([exitCode, stderr]).toEqual([
      1,
      expect.stringMatching(
        new RegExp(
          '^weir: weir could not reach Redis redis://127\\.0\\.0\\.1:\\d+ within 0\\.3 s of the start ' +
            '\\(REDIS_STARTUP_MAX_ELAPSED_TIME\\); .*$',
          'm',
        ),
      ),
    ]);
  });

  test('does not end a server that did', async () => {
    const redis = await startRedis();
    const [nowhere] = await freePorts(1);
    const limit = { REDIS_STARTUP_MAX_ELAPSED_TIME: '2s' };
    const store = open({ REDIS_URL: `127.0.0.1:${redis.port}`, ...limit });
    let ended = false;
    store.onGivenUp(() => {
      ended = true;
    });
    await expectDecided(store);
    await redis.kill();
    // This store starts later, so its time ends later.
    const other = open({ REDIS_URL: `127.0.0.1:${nowhere}`, ...limit });
    await new Promise((resolve) => other.onGivenUp(resolve));
    expect(ended).toBe(false);
    await redis.restart();
    await expectDecided(store);
  });
});
