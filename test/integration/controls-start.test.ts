/* Tests that calls to a new server wait until it has read the blocks, and the log lines for lost blocks. */

import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { STATUS } from '../../src/grpc/grpc-server.js';
import { systemClock } from '../../src/limiter/clock.js';
import { parseRedisUrl } from '../../src/storage/redis/connection/redis-address.js';
import { ProcessBook } from '../support/controls/books.js';
import { control } from '../support/controls/controls.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { REDIS } from '../support/limiter/store-options.js';
import { descriptor } from '../support/policy/decider.js';
import { waitFor } from '../support/process/wait-for.js';
import { acceptsConnections } from '../support/redis/accepts-connections.js';
import { redisCommand } from '../support/redis/redis-command.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { SingleRedisStore } from '../support/redis/single-stores.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';
import { metric, untilAllServe } from '../support/weir/workers.js';

jest.setTimeout(120_000);

const POLICY = `domain: d
descriptors:
  - key: tenant
    rate_limit: { unit: hour, requests_per_unit: 100000 }
`;
/** After this many calls of a blocked caller, the block certainly holds. */
const ENOUGH = 50;

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function startOwnRedis(): Promise<RedisServer> {
  const redis = await startRedis();
  closers.push(() => redis.stop());
  return redis;
}

/** Stores blocks of `count` tenants, named t0, t1 and so on. */
async function block(redis: RedisServer, count: number): Promise<void> {
  const store = new SingleRedisStore({ ...REDIS, address: parseRedisUrl(`redis://127.0.0.1:${redis.port}`) });
  await store.reached;
  const { book } = new ProcessBook(store, systemClock);
  const controls = Array.from({ length: count }, (_, at) => control(`t${at}`, { domain: 'd' }));
  for (let at = 0; at < count; at += 500) {
    const made = await Promise.all(controls.slice(at, at + 500).map((one) => book.put(one)));
    expect(new Set(made)).toEqual(new Set(['done']));
  }
  await book.close();
  await store.close();
}

async function start(
  redis: RedisServer,
  env: NodeJS.ProcessEnv = {},
  untilHealthy = true,
): Promise<WeirServer> {
  const server = await startWeir({
    policy: POLICY,
    env: { REDIS_URL: `127.0.0.1:${redis.port}`, ...env },
    untilHealthy,
  });
  closers.push(() => server.stop());
  return server;
}

/** Asks as a blocked caller from the opening of the port until {@link ENOUGH} denials, and returns every code. */
async function codesUntilDenied(server: WeirServer, tenant: string): Promise<unknown[]> {
  const codes: unknown[] = [];
  await waitFor('the port', () => acceptsConnections(server.grpcPort));
  const caller = async (): Promise<void> => {
    const client = new RlsClient(server.grpcPort);
    while (codes.filter((code) => code === CODE.OVER_LIMIT).length < ENOUGH) {
      const { code, response } = await client.ask('d', [descriptor([`tenant=${tenant}`])], {
        timeoutMs: 2000,
      });
      // On a busy machine, a connection can fail while the server starts.
      if (code !== STATUS.UNAVAILABLE) codes.push(response?.overallCode ?? `status ${code}`);
    }
    client.close();
  };
  await Promise.all(Array.from({ length: 8 }, caller));
  return codes;
}

describe('9000 blocks', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
    await block(redis, 9000);
  });
  afterAll(() => redis.stop());

  test.each(['1', '2'])('apply from the first call on, with WORKERS=%s', async (workers) => {
    const server = await start(redis, { WORKERS: workers }, false);
    // On a busy machine, the deadline of a call can pass first.
    expect(await codesUntilDenied(server, 't8999')).not.toContain(CODE.OK);
  });

  test('have been read by a server that reports SERVING, so that a short timeout is enough', async () => {
    const server = await start(redis);
    const client = new RlsClient(server.grpcPort);
    closers.push(() => client.close());
    const reply = await client.ask('d', [descriptor(['tenant=t8999'])], { timeoutMs: 250 });
    expect(reply.response?.overallCode).toBe(CODE.OVER_LIMIT);
  });
});

describe.each(['1', '2'])('3 blocks, with WORKERS=%s', (workers) => {
  let redis: RedisServer;
  let server: WeirServer;
  let codes: unknown[];
  beforeAll(async () => {
    redis = await startRedis();
    await block(redis, 3);
    server = await startWeir({
      policy: POLICY,
      env: { REDIS_URL: `127.0.0.1:${redis.port}`, WORKERS: workers },
      untilHealthy: false,
    });
    codes = await codesUntilDenied(server, 't0');
  });
  afterAll(async () => {
    await server.stop();
    await redis.stop();
  });

  test('apply from the first call on', () => {
    expect(codes).not.toContain(CODE.OK);
  });

  test('if Redis loses them, one warning reports the numbers', async () => {
    await untilAllServe(server);
    await waitFor('all of them', async () => (await metric(server, 'weir_controls{kind="block"}')) === 3);
    expect(await metric(server, 'weir_controls_lost_total{kind="block"}')).toBe(0);
    await redisCommand(redis, 'flushall');
    const warnings = () => server.log().filter(({ msg }) => /^Redis lost blocks/.test(String(msg)));
    await waitFor('their end', async () => (await metric(server, 'weir_controls{kind="block"}')) === 0);
    await waitFor('the warning', () => warnings().length > 0);
    expect(warnings()).toMatchObject([{ blocks: 3, exemptions: 0 }]);
    expect(await metric(server, 'weir_controls_lost_total{kind="block"}')).toBe(3);
    expect(await metric(server, 'weir_controls_lost_total{kind="allow"}')).toBe(0);
  });
});

test('if Redis denies access to the blocks, weir decides calls without them', async () => {
  const redis = await startOwnRedis();
  const rights = [
    '~weir:1:*',
    '-@all',
    '+evalsha',
    '+eval',
    '+mget',
    '+set',
    '+del',
    '+time',
    '+script|load',
  ];
  await redisCommand(redis, 'acl', 'setuser', 'weir', 'on', '>pw', ...rights);
  const server = await start(redis, { REDIS_URL: `redis://weir:pw@127.0.0.1:${redis.port}` });
  const client = new RlsClient(server.grpcPort);
  closers.push(() => client.close());
  for (let call = 0; call < 20; call++) {
    const { response } = await client.ask('d', [descriptor(['tenant=x'])], { timeoutMs: 250 });
    expect(response?.overallCode).toBe(CODE.OK);
  }
  const isWarned = () =>
    server.log().filter(({ msg }) => /cannot read blocks and exemptions from Redis/.test(String(msg)));
  await waitFor('the warning', () => isWarned().length > 0);
  expect(isWarned()).toHaveLength(1);
});

test('without Redis, the failure policy answers immediately, and blocks apply once it is reachable', async () => {
  const redis = await startOwnRedis();
  await block(redis, 1000);
  await redisCommand(redis, 'save');
  await redis.kill();
  const server = await start(redis, {}, false);
  const client = new RlsClient(server.grpcPort);
  closers.push(() => client.close());
  const ask = (timeoutMs: number) => client.ask('d', [descriptor(['tenant=t999'])], { timeoutMs });
  await waitFor('an answer of weir', async () => /store|Redis|decide/i.test((await ask(250)).details));
  expect((await ask(60_000)).details).toMatch(/store|Redis|decide/i);
  await redis.restart();
  const codes = new Set<unknown>();
  await waitFor('denials', async () => {
    const { response } = await ask(2000);
    if (response !== undefined) codes.add(response.overallCode);
    return codes.has(CODE.OVER_LIMIT);
  });
  expect(codes).toEqual(new Set([CODE.OVER_LIMIT]));
});
