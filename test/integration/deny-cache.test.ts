import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { CODE } from '../../src/codec/messages.js';
import { tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../src/limiter/window-unit.js';
import type { Store } from '../../src/server/store/store.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { takeItem } from '../support/limiter/take-items.js';
import { takeFrom } from '../support/limiter/test-stores.js';
import { httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';
import { redisClient } from '../support/redis/redis-client.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { openStoreOf } from '../support/weir/settings.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

/** Buckets refill so slowly that only a refund or a flush lets a request pass. */
const POLICY = `
domain: slow
descriptors:
  - key: tenant
    rate_limit:
      token_bucket: { max_tokens: 5, tokens_per_fill: 1, fill_interval: 1h }
`;

describe('two servers on one Redis', () => {
  let redis: RedisServer;
  let servers: WeirServer[];
  let clients: RlsClient[];
  let admin: Redis;

  beforeAll(async () => {
    redis = await startRedis();
    admin = redisClient(redis.port);
    const env = { REDIS_URL: `127.0.0.1:${redis.port}` };
    servers = await Promise.all([startWeir({ policy: POLICY, env }), startWeir({ policy: POLICY, env })]);
    clients = servers.map(({ grpcPort }) => new RlsClient(grpcPort));
  });
  afterEach(async () => {
    await admin.flushall();
  });

  async function ask(
    server: number,
    tenant: string,
    hitsAddend = 1,
    isNegativeHits = false,
  ): Promise<number> {
    const descriptor = {
      entries: [{ key: 'tenant', value: tenant }],
      limit: undefined,
      hitsAddend,
      isNegativeHits,
    };
    const { response } = await clients[server]!.ask('slow', [descriptor]);
    return response!.overallCode;
  }

  async function answers(server: number): Promise<number> {
    const { body } = await httpRequest(servers[server]!.httpPort, '/metrics');
    return Number(/^weir_deny_cache_answers_total (\d+)$/m.exec(body)![1]);
  }

  /** Resolves when `server` allows a request of `tenant`, whose bucket takes 12 minutes to refill. */
  const untilPassing = (server: number, tenant: string) =>
    waitFor('the request to pass', async () => (await ask(server, tenant)) === CODE.OK);

  test('repeat a denial without Redis', async () => {
    expect(await ask(0, 'busy', 5)).toBe(CODE.OK);
    expect(await ask(0, 'busy')).toBe(CODE.OVER_LIMIT);
    const before = await answers(0);
    redis.pause();
    try {
      expect(await ask(0, 'busy')).toBe(CODE.OVER_LIMIT);
      expect(await answers(0)).toBe(before + 1);
    } finally {
      redis.resume();
    }
  });

  test('apply a refund through the same server immediately', async () => {
    await ask(0, 'same', 5);
    expect(await ask(0, 'same')).toBe(CODE.OVER_LIMIT);
    expect(await ask(0, 'same', 1, true)).toBe(CODE.OK);
    expect(await ask(0, 'same')).toBe(CODE.OK);
  });

  test('apply a refund through the other server after the maximum age', async () => {
    await ask(0, 'other', 5);
    expect(await ask(0, 'other')).toBe(CODE.OVER_LIMIT);
    expect(await ask(1, 'other', 3, true)).toBe(CODE.OK);
    await untilPassing(0, 'other');
  });

  test('apply a flush after the maximum age', async () => {
    await ask(0, 'flushed', 5);
    expect(await ask(0, 'flushed')).toBe(CODE.OVER_LIMIT);
    await admin.flushall();
    await untilPassing(0, 'flushed');
  });
});

test('DENY_CACHE_MAX_AGE=0s makes every request ask Redis', async () => {
  const redis = await startRedis();
  const server = await startWeir({
    policy: POLICY,
    env: { REDIS_URL: `127.0.0.1:${redis.port}`, DENY_CACHE_MAX_AGE: '0s' },
  });
  const client = new RlsClient(server.grpcPort);
  const admin = redisClient(redis.port);
  const entries = [{ key: 'tenant', value: 'acme' }];
  const ask = async (hitsAddend: number) => {
    const descriptor = { entries, limit: undefined, hitsAddend, isNegativeHits: false };
    return (await client.ask('slow', [descriptor])).response!.overallCode;
  };
  expect([await ask(5), await ask(1)]).toEqual([CODE.OK, CODE.OVER_LIMIT]);
  await admin.flushall();
  expect(await ask(1)).toBe(CODE.OK);
});

test('a process forgets within a second the denials of a bucket that an operator filled in another one', async () => {
  const slow = tokenBucketRate(10, 1, UNIT_MICROS.hour);
  const redis = await startRedis();
  const open = (): Store => openStoreOf({ REDIS_URL: `127.0.0.1:${redis.port}`, DENY_CACHE_MAX_AGE: '10m' });
  const [one, other] = [open(), open()];
  await waitFor('both to be up', () => one.up() && other.up());
  const isLimited = async (store: Store): Promise<unknown> =>
    (await takeFrom(store.buckets, takeItem('a', slow)))[0]?.overLimit;
  await takeFrom(other.buckets, takeItem('a', slow, { hits: 10 }));
  for (const store of [one, other, other]) expect(await isLimited(store)).toBe(true);
  expect(other.denyCacheStats().answers).toBe(1);
  await takeFrom(one.buckets, takeItem('a', slow, { hits: 5, refund: true }));
  expect(await one.announceFilled()).toBeUndefined();
  expect(await isLimited(one)).toBe(false);
  await waitFor('the other to forget', async () => (await isLimited(other)) === false);
  for (const store of [one, other]) await store.close();
});
