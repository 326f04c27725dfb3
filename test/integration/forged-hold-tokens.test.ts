/* Hold tokens that a client has changed or invented, with a real Redis. */
import { beforeAll, expect, test } from '@jest/globals';
import type { RateLimitResponse } from '../../src/codec/messages.js';
import { ruleDigest } from '../../src/policy/names/stat-name.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { inventedToken } from '../support/limiter/hold-tokens.js';
import { descriptor } from '../support/policy/decider.js';
import { waitFor } from '../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';
import { metric } from '../support/weir/workers.js';

const POLICY = `
domain: d
descriptors:
  - { key: slots, rate_limit: { concurrency: { max: 10, expires_after: 1h } } }
  - { key: held, rate_limit: { unit: year, requests_per_unit: 100, hold: { amount: 20 } } }
  - { key: bucket, rate_limit: { algorithm: token_bucket, unit: day, requests_per_unit: 100, hold: { amount: 20 } } }
  - { key: held2, rate_limit: { unit: year, requests_per_unit: 100, hold: { amount: 20 } } }
`;

let redis: RedisServer;
let weir: WeirServer;
let client: RlsClient;

/** The same policy and Redis; most tests use only the other server. */
let sibling: WeirServer;
let siblingClient: RlsClient;

beforeAll(async () => {
  redis = await startRedis();
  const options = {
    policy: POLICY,
    env: {
      REDIS_URL: `127.0.0.1:${redis.port}`,
      // A process without bounds exceeds this heap.
      NODE_OPTIONS: '--max-old-space-size=160',
    },
  };
  weir = await startWeir(options);
  sibling = await startWeir(options);
  client = new RlsClient(weir.grpcPort);
  siblingClient = new RlsClient(sibling.grpcPort);
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

test.each([0, 1, 19, 21])(
  'a token with a fraction of a hit takes nothing if it says that %i hits were used',
  async (used) => {
    const entry = `bucket=${used}`;
    const token = await tokenOf(entry);
    expect(token).toContain('k20.');
    for (let i = 0; i < 3; i++) await ask(`hold=${token.replace('k20.', 'k1e-7.')}`, used);
    expect(await left(entry)).toBe(80);
  },
);

/** Returns a token of invented holds of another policy's rule. `name`: the value in the names of their buckets. */
function invented(amount: number, count: number, name: string): string {
  const suffix = '%holds';
  const tag = `1:d5:slots${name.length}:${name}`;
  const hold = {
    key: tag + suffix,
    hashTagLength: tag.length,
    suffix,
    amount,
    rule: ruleDigest('5:slots0:'),
  };
  const values = { lifetimeMillis: 3_600_000, fullAtMicros: 0, isLocal: false, freesUnknown: false };
  return inventedToken(Array.from({ length: count }, () => ({ ...hold, ...values })));
}

/** Returns the value of a counter of the sibling. */
async function counter(line: string): Promise<number> {
  return (await metric(sibling, line)) || 0;
}

/** Calls with invented tokens, and holds in each of their tokens. */
const CALLS = 1700;
const HOLDS = 35;

test('invented tokens lose no honest ends at a sibling while Redis hangs, and never count as settled', async () => {
  const honest = await Promise.all(Array.from({ length: 50 }, (_, i) => tokenOf(`slots=honest${i}`, 10)));
  const lostBefore = await counter('weir_hold_settlements_lost_total{domain="d",rule="slots"}');
  const settled = (): Promise<number> =>
    counter('weir_holds_settled_total{domain="d",rule="slots",use="known"}');
  const unmatched = async (): Promise<number> =>
    (await counter('weir_hold_tokens_unmatched_total{domain="d",kind="unknown"}')) +
    (await counter('weir_hold_tokens_unmatched_total{domain="d",kind="unverified"}'));
  const [settledBefore, unmatchedBefore] = [await settled(), await unmatched()];
  redis.pause();
  const name = 'x'.repeat(120);
  const send = (token: string): Promise<unknown> =>
    siblingClient.ask('d', [descriptor([`hold=${token}`])], { timeoutMs: 60_000 });
  const flood = Array.from({ length: CALLS }, (_, i) => send(invented(i < 5 ? 1000 : 1, HOLDS, name)));
  const ends = honest.map(send);
  await Promise.all([...flood, ...ends]);
  redis.resume();
  const entries = honest.map((_, i) => `slots=honest${i}`);
  await waitFor('the honest ends', async () => {
    const all = await Promise.all(entries.map(left));
    return all.every((slots) => slots === 10) || undefined;
  });
  // An honest end that Redis executed without an answer counts as unknown.
  await waitFor('the counts of all ends', async () => {
    const counted = (await settled()) - settledBefore + (await unmatched()) - unmatchedBefore;
    return counted === CALLS * HOLDS + honest.length || undefined;
  });
  expect((await settled()) - settledBefore).toBeLessThanOrEqual(honest.length);
  expect(await counter('weir_hold_settlements_lost_total{domain="d",rule="slots"}')).toBe(lostBefore);
});
