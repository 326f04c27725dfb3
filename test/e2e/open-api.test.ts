/*
 * Tests the Open API policy as a client sees it: a real Envoy with the shipped bootstrap, a real weir, buckets in
 * memory and in Redis. Buckets refill during the tests, so the tests compute bounds for counts from the times of
 * requests and responses.
 */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { type Burst, fireBurst } from '../support/envoy/burst.js';
import { SECURITIES, type Stack, startStack } from '../support/envoy/stack.js';
import { type HttpAnswer, headerOf, headersLike, httpRequest } from '../support/process/http-client.js';

const CHATS = '/open/v5/user-chats';
const PER_SECOND = 10;

/** Returns the number of whole tokens that can refill in that time. */
const tokensIn = (ms: number) => Math.floor((ms / 1000) * PER_SECOND);
const namesOf = (answer: HttpAnswer) => headersLike(answer, 'x-ratelimit').map(([name]) => name);
const numberOf = (answer: HttpAnswer, name: string) => {
  const value = headerOf(answer, name);
  expect(value).toMatch(/^\d+$/);
  return Number(value);
};
const nowSeconds = () => Date.now() / 1000;
const THREE = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'];
const FOUR = [...THREE, 'x-ratelimit-will-be-throttled'];

/** Expects a reset of at most 1/10 s, which is rounded up to the next whole second. */
function expectResetSoon(answer: HttpAnswer, before: number): void {
  const reset = numberOf(answer, 'x-ratelimit-reset');
  expect(reset).toBeGreaterThanOrEqual(Math.floor(before));
  expect(reset).toBeLessThanOrEqual(Math.ceil(nowSeconds() + 1 / PER_SECOND) + 1);
}

const STACKS = SECURITIES.flatMap((security) =>
  (['memory', 'redis'] as const).map((store) => ({ store, security })),
);

describe.each(STACKS)('through Envoy in $security, buckets in $store', ({ store, security }) => {
  let stack: Stack;
  let tenants = 0;
  /** Returns a tenant that no other test uses, with full buckets. */
  const freshTenant = () => {
    tenants += 1;
    return { 'x-tenant': `tenant-${tenants}` };
  };
  const get = (path: string, headers: Record<string, string>, method = 'GET') =>
    httpRequest(stack.envoy.port, path, { method, headers });

  beforeAll(async () => {
    stack = await startStack({ store, security });
  });

  test('sends exactly three headers with an allowed response', async () => {
    const before = nowSeconds();
    const answer = await get(CHATS, freshTenant());
    expect(answer.status).toBe(200);
    expect(namesOf(answer).sort()).toEqual(THREE);
    expect(numberOf(answer, 'x-ratelimit-limit')).toBe(100);
    expect(numberOf(answer, 'x-ratelimit-remaining')).toBe(99);
    expectResetSoon(answer, before);
    expect(JSON.parse(answer.body)).toMatchObject({ method: 'GET', path: CHATS });
  });

  test('allows what the bucket holds of 200 concurrent requests, and the refilled tokens a second later', async () => {
    const tenant = freshTenant();
    const before = nowSeconds();
    const first = await fireBurst(stack.envoy.port, CHATS, 200, tenant);
    expect(first.count(200) + first.count(429)).toBe(200);
    expect(first.count(200)).toBeGreaterThanOrEqual(100);
    expect(first.count(200)).toBeLessThanOrEqual(100 + tokensIn(first.lastAnsweredAt - first.firstSentAt));

    for (const answer of first.answers) {
      expect(namesOf(answer).sort()).toEqual(answer.status === 200 ? THREE : FOUR);
      expect(numberOf(answer, 'x-ratelimit-limit')).toBe(100);
      expectResetSoon(answer, before);
      if (answer.status === 200) continue;
      expect(numberOf(answer, 'x-ratelimit-remaining')).toBe(0);
      expect(headerOf(answer, 'x-ratelimit-will-be-throttled')).toBe('true');
    }
    // The first 100 decisions each left one token fewer; later ones took tokens that had just been refilled.
    const remaining = first.answers
      .filter(({ status }) => status === 200)
      .map((answer) => numberOf(answer, 'x-ratelimit-remaining'));
    expect(Math.max(...remaining)).toBe(99);
    expect(Math.min(...remaining)).toBe(0);

    const until = first.lastAnsweredAt + 1000;
    await new Promise((resolve) => setTimeout(resolve, until - performance.now()));
    const second = await fireBurst(stack.envoy.port, CHATS, 100, tenant);
    expect(second.count(200) + second.count(429)).toBe(100);
    const admitted = first.count(200) + second.count(200);
    // The bucket is not full after the first decision, so the refill between the bursts is exact, except for the times
    // of the decisions.
    expect(admitted).toBeGreaterThanOrEqual(100 + tokensIn(second.firstSentAt - first.firstAnsweredAt));
    expect(admitted).toBeLessThanOrEqual(100 + tokensIn(second.lastAnsweredAt - first.firstSentAt));
    // weir made every decision.
    await expect(stack.envoy.stat('cluster.upstream.ratelimit.failure_mode_allowed')).resolves.toBe(0);
  });

  /** Empties the bucket of user chats, and retries while tokens refill, until `probe` sees an empty bucket. */
  async function emptyChats(tenant: Record<string, string>): Promise<Burst> {
    const burst = await fireBurst(stack.envoy.port, CHATS, 160, tenant);
    expect(burst.count(429)).toBeGreaterThan(0);
    return burst;
  }

  test('v4 and v5 share a bucket', async () => {
    const tenant = freshTenant();
    const v5 = numberOf(await get(CHATS, tenant), 'x-ratelimit-remaining');
    const v4 = numberOf(await get('/open/v4/user-chats', tenant), 'x-ratelimit-remaining');
    expect(v5).toBe(99);
    // 98, or 99 if a token was refilled in between.
    expect([98, 99]).toContain(v4);
    const replies = await Promise.all(
      Array.from({ length: 100 }, (_, index) => get(`/open/v${4 + (index % 2)}/user-chats`, tenant)),
    );
    const left = Math.min(...replies.map((answer) => numberOf(answer, 'x-ratelimit-remaining')));
    expect(left).toBeLessThan(50);
  });

  test('an empty bucket does not affect the other group or other tenants', async () => {
    const tenant = freshTenant();
    await emptyChats(tenant);
    const other = await get('/open/v5/groups', tenant);
    expect(other.status).toBe(200);
    expect(numberOf(other, 'x-ratelimit-limit')).toBe(1000);
    expect(numberOf(other, 'x-ratelimit-remaining')).toBe(999);
    const newTenant = await get(CHATS, freshTenant());
    expect(newTenant.status).toBe(200);
    expect(numberOf(newTenant, 'x-ratelimit-remaining')).toBe(99);
  });

  test.each([
    ['GET', '/open/v5/user-chats?x=1', 100],
    ['GET', '/open//v5/user-chats/', 100],
    ['GET', '/open/v5/user%2Dchats', 100],
    ['GET', '/open/v5/./user-chats', 100],
    ['GET', '/open/v6/../v4/user-chats', 100],
    ['POST', '/open/v5/user-chats', 1000],
    ['GET', '/open/v5/user-chats/123', 1000],
    ['GET', '/open/v6/user-chats', 1000],
    ['GET', '/open/v5/User-Chats', 1000],
  ])('%s %s uses the bucket of %i', async (method, path, limit) => {
    const answer = await get(path, freshTenant(), method);
    expect(answer.status).toBe(200);
    expect(numberOf(answer, 'x-ratelimit-limit')).toBe(limit);
  });

  test('a path outside /open/ has no limit', async () => {
    const answer = await get('/internal/status', freshTenant());
    expect(answer.status).toBe(200);
    expect(namesOf(answer)).toEqual([]);
  });

  test('refuses a request without a tenant', async () => {
    const answer = await get(CHATS, {});
    expect(answer.status).toBe(401);
    expect(namesOf(answer)).toEqual([]);
  });
});
