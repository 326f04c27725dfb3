/*
 * Tests the policy of docs/operate/redis-outages.md ("Choose the answer for each rule") behind two real Envoys that
 * differ in failure_mode_deny, with a Redis that is killed, and one that hangs.
 */
import type { Server } from 'node:http';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { pageSections } from '../support/docs/page-examples.js';
import { pageText } from '../support/docs/pages.js';
import { fromHeader, startRouteEnvoy } from '../support/envoy/route-envoy.js';
import { startUpstream } from '../support/envoy/stack.js';
import { httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const PAGE = 'docs/operate/redis-outages.md';
const policy = pageSections(PAGE, pageText(PAGE))
  .flatMap(({ examples }) => examples)
  .find(({ name }) => name === 'without-redis')?.policy;

const KEYS = ['search', 'login', 'partner', 'tenant'] as const;
type Key = (typeof KEYS)[number];

let redis: RedisServer;
let upstream: { server: Server; port: number };
let weir: WeirServer;
const envoys: { port: number; stop(): Promise<unknown> }[] = [];

beforeAll(async () => {
  redis = await startRedis();
  upstream = await startUpstream();
  // REDIS_TIMEOUT keeps its default of 2 s, because Envoy's timeout of 1 s takes precedence.
  weir = await startWeir({ policy: policy ?? '', env: { REDIS_URL: `127.0.0.1:${redis.port}` } });
  for (const failureModeDeny of [false, true]) {
    envoys.push(
      await startRouteEnvoy({
        domain: 'shop',
        weirPort: weir.grpcPort,
        upstreamPort: upstream.port,
        routes: [{ path: '/', rateLimits: KEYS.map((key) => ({ actions: [fromHeader(key)] })) }],
        timeout: '1s',
        failureModeDeny,
      }),
    );
  }
});

const ask = async (key: Key, value: string, failureModeDeny = false) =>
  (await httpRequest(envoys[Number(failureModeDeny)]?.port ?? 0, '/', { headers: { [key]: value } })).status;

const storeIsUp = async () => {
  const { body } = await httpRequest(weir.httpPort, '/healthcheck?detail');
  return (JSON.parse(body) as { storeUp: boolean }).storeUp;
};

/** Expects the answer of each rule without Redis, and the answer of Envoy where weir reports an error. */
async function expectRecipe(value: string): Promise<void> {
  expect(await ask('search', value)).toBe(200);
  expect(await ask('login', value)).toBe(429);
  expect([await ask('partner', value, false), await ask('partner', value, true)]).toEqual([200, 500]);
  // Half of the limit is two tokens, shared by both gateways.
  expect([
    await ask('tenant', value),
    await ask('tenant', value, true),
    await ask('tenant', value, true),
  ]).toEqual([200, 200, 429]);
}

describe('each rule answers as the recipe says', () => {
  test('with Redis', async () => {
    for (const key of KEYS) expect([key, await ask(key, 'first', true)]).toEqual([key, 200]);
  });

  test('a killed Redis', async () => {
    await redis.kill();
    await waitFor('the loss', async () => !(await storeIsUp()));
    await expectRecipe('killed');
    await redis.restart();
    await waitFor('Redis to be back', storeIsUp);
    expect(await ask('login', 'killed', true)).toBe(200);
  });

  test('with a Redis that hangs from the first request on, within the deadline of Envoy', async () => {
    // weir does not know yet that Redis hangs, and answers 50 ms before Envoy's deadline. A busy machine can miss that
    // once.
    let attempt = 0;
    await waitFor('answers in time', async () => {
      // Local buckets of an earlier attempt still exist.
      attempt++;
      redis.pause();
      try {
        expect(await Promise.all(KEYS.map((key) => ask(key, `hangs-${attempt}`, true)))).toEqual([
          200, 429, 500, 200,
        ]);
        await expectRecipe(`paused-${attempt}`);
      } finally {
        redis.resume();
        await waitFor('Redis to be back', storeIsUp);
      }
      return true;
    });
    expect(await ask('login', 'hangs', true)).toBe(200);
  });
});
