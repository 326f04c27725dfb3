/*
 * Tests reservations of LLM tokens with a real Envoy: the estimate is held when a request starts, and the use that the
 * response reports is settled when it ends.
 */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { type Caller, http2Caller } from '../../support/envoy/caller.js';
import { startHoldEnvoy } from '../../support/envoy/hold-envoy.js';
import { HoldPeeks } from '../../support/envoy/hold-peeks.js';
import type { RouteEnvoy } from '../../support/envoy/route-envoy.js';
import { ScriptedUpstream } from '../../support/envoy/scripted-upstream.js';
import { waitFor } from '../../support/process/wait-for.js';
import { scrape, sumOf } from '../../support/prometheus/metrics-text.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';

const BUDGET = 100_000;
const ESTIMATE = 5000;
const HOLD = `hold: { amount: ${ESTIMATE}, expires_after: 10m }`;
// A year, so that no window ends during the test.
const WINDOW = `algorithm: fixed_window, unit: year, requests_per_unit: ${BUDGET}`;
const POLICY = `
domain: llm
descriptors:
  - key: bucket
    rate_limit: { token_bucket: { max_tokens: ${BUDGET}, tokens_per_fill: ${BUDGET}, fill_interval: 8760h }, ${HOLD} }
  - key: window
    rate_limit: { ${WINDOW}, ${HOLD} }
  - key: lenient
    rate_limit: { ${WINDOW}, hold: { amount: ${ESTIMATE}, expires_after: 10m, unknown: free } }
  - key: model
    rate_limit: { concurrency: { max: 200, expires_after: 10m } }
`;

let upstream: ScriptedUpstream;
beforeAll(async () => {
  upstream = await ScriptedUpstream.start();
});

describe.each(['memory', 'redis'] as const)('with the store %s', (store) => {
  let redis: RedisServer | undefined;
  let weir: WeirServer;
  let envoy: RouteEnvoy;
  let caller: Caller;
  let peeks: HoldPeeks;

  beforeAll(async () => {
    if (store === 'redis') redis = await startRedis();
    weir = await startWeir({
      policy: POLICY,
      env: redis === undefined ? {} : { REDIS_URL: `redis://127.0.0.1:${redis.port}` },
    });
    peeks = new HoldPeeks('llm', weir.grpcPort);
    envoy = await startHoldEnvoy({
      domain: 'llm',
      weirPort: weir.grpcPort,
      upstreamPort: upstream.port,
      keys: ['bucket', 'window', 'lenient', 'model'],
    });
    caller = http2Caller(envoy.port);
  });

  /** Returns how many holds were settled so far, with a `known` or an `unknown` use. */
  async function settledWith(use: string): Promise<number> {
    const metrics = await scrape(weir);
    return metrics ? sumOf(metrics, 'weir_holds_settled_total', `use="${use}"`) : Number.NaN;
  }

  test.each([
    ['bucket', 'equal to the estimate', ESTIMATE, BUDGET - ESTIMATE],
    ['bucket', 'below the estimate', 3000, BUDGET - 3000],
    ['bucket', 'above the estimate', 7000, BUDGET - 7000],
    ['bucket', 'of 0', 0, BUDGET],
    ['bucket', 'that is unknown', undefined, BUDGET - ESTIMATE],
    ['window', 'below the estimate', 3000, BUDGET - 3000],
    ['window', 'above the estimate', 7000, BUDGET - 7000],
    ['window', 'of 0', 0, BUDGET],
    ['window', 'that is unknown', undefined, BUDGET - ESTIMATE],
    ['lenient', 'above the estimate', 7000, BUDGET - 7000],
    ['lenient', 'that is unknown', undefined, BUDGET],
  ])('%s: charges a use %s', async (key, _use, used, left) => {
    const id = `${store} ${key} ${used}`;
    const use = used === undefined ? 'unknown' : 'known';
    const settled = await settledWith(use);
    const open = caller.get('/', { [key]: id, 'x-id': id });
    const call = await upstream.next(id);
    expect(await peeks.left(`${key}=${id}`)).toBe(BUDGET - ESTIMATE);
    call.answer(200, used === undefined ? {} : { 'x-tokens-used': used });
    expect(await open.status).toBe(200);
    await waitFor('the settlement', async () => (await settledWith(use)) === settled + 1 || undefined);
    expect(await peeks.left(`${key}=${id}`)).toBe(left);
  });

  test('keeps the estimate of a client that leaves, and settles all holds of its request', async () => {
    const id = `${store} leaves`;
    const open = caller.get('/', { window: id, lenient: id, model: id, 'x-id': id });
    const call = await upstream.next(id);
    expect(await peeks.left(`model=${id}`)).toBe(199);
    open.abort();
    await call.over;
    await peeks.until(`model=${id}`, 200);
    await peeks.until(`lenient=${id}`, BUDGET);
    await peeks.until(`window=${id}`, BUDGET - ESTIMATE);
  });

  test('never starts more parallel requests than the budget covers, and leaves exactly what was not used', async () => {
    const id = `${store} parallel`;
    const USED = 3000;
    const headers = { window: id, 'x-id': id };
    let left = BUDGET;
    // Denied requests come back until the budget covers no further estimate.
    for (const admitted of [20, 8, 3, 1, 0]) {
      const open = Array.from({ length: 100 }, () => caller.get('/', headers));
      const statuses = open.map(({ status }) => status);
      let denied = 0;
      for (const status of statuses) void status.then((code) => (denied += code === 429 ? 1 : 0));
      await waitFor('the denials', () => denied === 100 - admitted || undefined);
      expect(await peeks.left(`window=${id}`)).toBe(left - admitted * ESTIMATE);
      for (let i = 0; i < admitted; i++) (await upstream.next(id)).answer(200, { 'x-tokens-used': USED });
      expect((await Promise.all(statuses)).filter((code) => code === 200)).toHaveLength(admitted);
      expect(upstream.waiting(id)).toEqual([]);
      left -= admitted * USED;
      await peeks.until(`window=${id}`, left);
    }
    expect(left).toBe(BUDGET - 32 * USED);
  });
});
