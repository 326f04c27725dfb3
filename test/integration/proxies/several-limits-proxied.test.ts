/* Tests lists of limits with a server and the service in this process behind real proxies (REDIS_TYPE=PROXY). */
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { CODE, type Descriptor, type RateLimitResponse } from '../../../src/codec/messages.js';
import { systemClock } from '../../../src/limiter/clock.js';
import type { Store } from '../../../src/server/store/store.js';
import { Refusal } from '../../../src/service/refusal.js';
import { ShouldRateLimit } from '../../../src/service/should-rate-limit.js';
import { RlsClient } from '../../support/grpc/rls-client.js';
import { proxyBenches } from '../../support/limiter/proxy-bench.js';
import { Decider, descriptor } from '../../support/policy/decider.js';
import { httpRequest } from '../../support/process/http-client.js';
import { waitFor } from '../../support/process/wait-for.js';
import { openStoreOf } from '../../support/weir/settings.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';

// Redis, proxies and servers can be slow to start on a busy machine.
jest.setTimeout(60_000);

const REQUESTS = 120;
const TIGHT = 37;
/** Refills are too slow to matter, and windows last a year, so that counts stay. */
const POLICY = `
domain: d
descriptors:
  - key: tokens
    rate_limits:
      - { name: tight, token_bucket: { max_tokens: ${TIGHT}, fill_interval: 24h } }
      - { name: loose, token_bucket: { max_tokens: 100, fill_interval: 24h } }
  - key: mixed
    rate_limits:
      - { name: year, unit: year, requests_per_unit: 1000 }
      - { name: tight, token_bucket: { max_tokens: ${TIGHT}, fill_interval: 24h } }
  - { key: without-tight, rate_limit: { replaces: [{ name: tight }], unlimited: true } }
`;

describe.each(proxyBenches())('two limits of each request, behind $name', (bench) => {
  let server: WeirServer;
  let client: RlsClient;
  let store: Store;
  /** The server, and the service over its own store in this process. */
  let deciders: ((descriptors: readonly Descriptor[]) => Promise<RateLimitResponse>)[];

  beforeAll(async () => {
    await bench.start();
    const env = {
      REDIS_URL: `127.0.0.1:${bench.proxy.port}`,
      REDIS_TYPE: 'proxy',
      STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true',
    };
    server = await startWeir({ policy: POLICY, env });
    client = new RlsClient(server.grpcPort);
    store = openStoreOf(env);
    await waitFor('the proxy', () => store.up());
    const { options } = new Decider(POLICY, { store: store.buckets });
    const service = new ShouldRateLimit({ ...options, clock: systemClock, local: store.local });
    deciders = [
      async (descriptors) => {
        const { response, code, details } = await client.ask('d', descriptors);
        if (response === undefined) throw new Error(`${code} ${details}`);
        return response;
      },
      async (descriptors) => {
        const decided = await service.decide({ domain: 'd', descriptors, hitsAddend: 0 });
        if (decided instanceof Refusal) throw new Error(decided.message);
        return decided;
      },
    ];
  });

  afterAll(async () => {
    client.close();
    await store.close();
    await server.stop();
    await bench.stop();
  });

  const ask = (call: number, ...descriptors: readonly Descriptor[]): Promise<RateLimitResponse> =>
    deciders[call % deciders.length]!(descriptors);

  const passes = async (key: string, requests: number): Promise<number> => {
    const replies = await Promise.all(
      Array.from({ length: requests }, (_, i) => ask(i, descriptor([`${key}=a`]))),
    );
    return replies.filter(({ overallCode }) => overallCode === CODE.OK).length;
  };

  /** Returns the remaining hits of the limit that is not `tight`. */
  const left = async (key: string): Promise<number | undefined> => {
    const look = descriptor([`${key}=a`], { hitsAddend: 0 });
    const { statuses } = await ask(0, look, descriptor(['without-tight']));
    expect(statuses[0]?.currentLimit?.name).not.toBe('tight');
    return statuses[0]?.limitRemaining;
  };

  test.each([
    ['tokens', 100],
    ['mixed', 1000],
  ])(
    '%s: allow the hits of the tighter limit, and take the same number from the other',
    async (key, most) => {
      const atOnce = await passes(key, REQUESTS);
      // A call can find tokens missing that a concurrent call is about to give back.
      if (bench.honoursHashTags) expect(atOnce).toBe(TIGHT);
      else expect(atOnce).toBeLessThanOrEqual(TIGHT);
      let passed = atOnce;
      await waitFor('all tokens to be taken', async () => {
        passed += await passes(key, 1);
        return passed >= TIGHT;
      });
      expect(await passes(key, 10)).toBe(0);
      expect(passed).toBe(TIGHT);
      await waitFor(
        'the tokens of denied requests to be given back',
        async () => (await left(key)) === most - TIGHT,
      );
    },
  );

  test('health and detail report the proxy', async () => {
    const { status, body } = await httpRequest(server.httpPort, '/healthcheck?detail');
    expect(status).toBe(200);
    expect(body).toContain(`127.0.0.1:${bench.proxy.port}`);
  });
});
