/*
 * Tests on_store_failure: { local: … } with a real Redis that is killed, stopped and restarted with its data. Each
 * worker allows its part of the limit, answers report the whole limit, and weir forgets the allowed hits when Redis is
 * back.
 */
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { CODE, type RateLimitResponse } from '../../src/codec/messages.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const POLICY = `
domain: d
response_headers: [x-ratelimit]
descriptors:
  - key: tenant
    rate_limit: { on_store_failure: { local: 0.5 }, token_bucket: { max_tokens: 40, fill_interval: 1000h } }
  - key: window
    rate_limit: { on_store_failure: { local: 0.5 }, unit: year, requests_per_unit: 40 }
  - { key: seen, rate_limit: { on_store_failure: allow, token_bucket: { max_tokens: 1000000, tokens_per_fill: 1000000, fill_interval: 1h } } }
`;
const WORKERS = 2;
/** Enough connections that each worker has some. */
const CONNECTIONS = 8;

let redis: RedisServer;
let server: WeirServer;
let clients: readonly RlsClient[];

beforeAll(async () => {
  redis = await startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
  server = await startWeir({
    policy: POLICY,
    env: { REDIS_URL: `127.0.0.1:${redis.port}`, REDIS_TIMEOUT: '1s', WORKERS: String(WORKERS) },
  });
  // Workers that serve accept connections in turn.
  await waitFor('every worker to serve', async () => {
    const { body } = await httpRequest(server.httpPort, '/healthcheck?detail');
    const { workers } = JSON.parse(body) as { workers: readonly { status: string }[] };
    return (workers.length === WORKERS && workers.every(({ status }) => status === 'SERVING')) || undefined;
  });
});
beforeEach(() => {
  clients = Array.from({ length: CONNECTIONS }, () => new RlsClient(server.grpcPort));
});

const askOf = async (client: RlsClient, entry: string, hitsAddend = 1): Promise<RateLimitResponse> => {
  const { response, details } = await client.ask('d', [descriptor([entry])], { timeoutMs: 5000, hitsAddend });
  if (response === undefined) throw new Error(`no answer: ${details}`);
  return response;
};
const ask = (entry: string, hitsAddend?: number) => askOf(clients[0] as RlsClient, entry, hitsAddend);

/** Waits until the workers of all connections decide with Redis, or without it. */
const untilRedis = (decides: boolean): Promise<unknown> =>
  waitFor(`Redis to ${decides ? 'decide' : 'be missed'} everywhere`, async () => {
    const answers = await Promise.all(clients.map((client) => askOf(client, 'seen=x')));
    const byRedis = answers.filter(({ statuses }) => statuses[0]?.currentLimit !== undefined);
    return byRedis.length === (decides ? CONNECTIONS : 0) || undefined;
  });

/** Sends requests on all connections in turn until all are denied; returns the allowed answers. */
async function admitAll(entry: string): Promise<readonly RateLimitResponse[]> {
  const passed: RateLimitResponse[] = [];
  for (let denied = 0; denied < CONNECTIONS; ) {
    denied = 0;
    for (const client of clients) {
      const answer = await askOf(client, entry);
      if (answer.overallCode === CODE.OK) passed.push(answer);
      else denied++;
    }
  }
  return passed;
}

describe('a share of the limit without Redis', () => {
  test.each([
    ['a token bucket', 'tenant=killed'],
    ['a window', 'window=killed'],
  ])('is allowed by all workers together, for %s, and forgotten when Redis is back', async (_, entry) => {
    await untilRedis(true);
    expect((await ask(entry, 12)).statuses[0]).toMatchObject({ code: CODE.OK, limitRemaining: 28 });
    await redis.kill();
    await untilRedis(false);
    const passed = await admitAll(entry);
    // The share is half of 40, and each worker has half of the share.
    expect(passed).toHaveLength(20);
    for (const { statuses } of passed) {
      expect(statuses[0]?.currentLimit?.requestsPerUnit).toBe(40);
      expect(statuses[0]?.limitRemaining).toBeLessThan(10);
    }
    await redis.restart();
    await untilRedis(true);
    expect((await ask(entry)).statuses[0]).toMatchObject({ code: CODE.OK, limitRemaining: 27 });
  });

  test('does not change a bucket in Redis when a paused Redis continues', async () => {
    const entry = 'tenant=stopped';
    await untilRedis(true);
    expect((await ask(entry, 30)).overallCode).toBe(CODE.OK);
    redis.pause();
    await untilRedis(false);
    expect(await admitAll(entry)).toHaveLength(20);
    redis.resume();
    await untilRedis(true);
    expect(await admitAll(entry)).toHaveLength(10);
  });
});
