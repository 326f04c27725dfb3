/* Hold tokens that a client has changed or invented, with a real Redis. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { RateLimitResponse } from '../../src/codec/messages.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const POLICY = `
domain: d
descriptors:
  - { key: slots, rate_limit: { concurrency: { max: 10, expires_after: 1h } } }
  - { key: held, rate_limit: { unit: year, requests_per_unit: 100, hold: { amount: 20 } } }
  - { key: held2, rate_limit: { unit: year, requests_per_unit: 100, hold: { amount: 20 } } }
`;

let redis: RedisServer;
let weir: WeirServer;
let client: RlsClient;

beforeAll(async () => {
  redis = await startRedis();
  weir = await startWeir({ policy: POLICY, env: { REDIS_URL: `127.0.0.1:${redis.port}` } });
  client = new RlsClient(weir.grpcPort);
});
afterAll(async () => {
  client?.close();
  await weir?.stop();
  await redis?.stop();
});

async function ask(entry: string, hitsAddend?: number): Promise<RateLimitResponse> {
  const { response, details } = await client.ask('d', [descriptor([entry], { hitsAddend })], {
    timeoutMs: 10_000,
  });
  if (response === undefined) throw new Error(`${entry}: ${details}`);
  return response;
}

async function tokenOf(entry: string, hits?: number): Promise<string> {
  return String((await ask(entry, hits)).dynamicMetadata?.['hold']);
}

async function left(entry: string): Promise<number | undefined> {
  return (await ask(entry, 0)).statuses[0]?.limitRemaining;
}

test.each(['k1.', 'k4.', 'k6.', 'k1001.', 'k4294967295.', 'f5.'])(
  'a token of 5 slots that says %s instead of k5. ends nothing',
  async (terms) => {
    const entry = `slots=${terms}`;
    const token = await tokenOf(entry, 5);
    expect(token).toContain('k5.');
    await ask(`hold=${token.replace('k5.', terms)}`);
    expect(await left(entry)).toBe(5);
    await ask(`hold=${token}`);
    expect(await left(entry)).toBe(10);
  },
);

test('a token that names another rule with buckets of the same kind ends nothing', async () => {
  const [token, other] = [await tokenOf('held=x'), await tokenOf('held2=x')];
  const rule = (text: string): string => text.slice(40, 62);
  await ask(`hold=${token.replace(rule(token), rule(other))}`, 0);
  expect(await left('held=x')).toBe(80);
  await ask(`hold=${token}`, 0);
  expect(await left('held=x')).toBe(100);
});
