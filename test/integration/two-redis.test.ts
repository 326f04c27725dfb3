/*
 * Tests a server with a second Redis for windows of a second, which is killed between the steps of a request to both.
 */
import { beforeEach, expect, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { STATUS } from '../../src/grpc/grpc-server.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';
import { type PausableProxy, startPausableProxy } from '../support/redis/pausable-proxy.js';
import { redisClient } from '../support/redis/redis-client.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const POLICY = `
domain: d
descriptors:
  - { key: second, rate_limit: { unit: second, requests_per_unit: 1000000 } }
  - { key: tokens, rate_limit: { token_bucket: { max_tokens: 100, fill_interval: 1000h } } }
`;

let main: RedisServer;
let second: RedisServer;
let proxy: PausableProxy;
let admin: Redis;
let server: WeirServer;
let client: RlsClient;

beforeEach(async () => {
  main = await startRedis();
  second = await startRedis();
  proxy = await startPausableProxy(second.port);
  admin = redisClient(main.port);
  server = await startWeir({
    policy: POLICY,
    env: {
      REDIS_URL: `127.0.0.1:${main.port}`,
      REDIS_PERSECOND: 'true',
      REDIS_PERSECOND_URL: `127.0.0.1:${proxy.port}`,
      REDIS_TIMEOUT: '20s',
      STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true',
    },
  });
  client = new RlsClient(server.grpcPort);
});

const buckets = async () => (await admin.keys('*')).filter((key) => key.includes('tokens'));
const givenBack = async (): Promise<string | undefined> => {
  const { body } = await httpRequest(server.httpPort, '/metrics');
  return /^weir_redis_give_backs_total\{result="made"\} (\d+)$/m.exec(body)?.[1];
};

test('tokens of a request that fails on the second Redis are given back, and counted', async () => {
  expect(await givenBack()).toBe('0');
  proxy.pause('replies');
  const call = client.ask('d', [descriptor(['second=1']), descriptor(['tokens=1'])]);
  await waitFor('the main Redis to have taken', async () => (await buckets()).length === 1);
  await second.kill();
  expect(await call).toMatchObject({ code: STATUS.UNAVAILABLE });
  await waitFor('the bucket to be full again', async () => (await buckets()).length === 0);
  await waitFor('the count of it', async () => (await givenBack()) === '1');
});
