/* Tests lists of limits with two real servers behind real proxies (REDIS_TYPE=PROXY). */
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { CODE } from '../../../src/codec/messages.js';
import { RlsClient } from '../../support/grpc/rls-client.js';
import { proxyBenches } from '../../support/limiter/proxy-bench.js';
import { descriptor } from '../../support/policy/decider.js';
import { httpRequest } from '../../support/process/http-client.js';
import { waitFor } from '../../support/process/wait-for.js';
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
  let servers: WeirServer[] = [];
  let clients: RlsClient[] = [];

  beforeAll(async () => {
    await bench.start();
    const env = {
      REDIS_URL: `127.0.0.1:${bench.proxy.port}`,
      REDIS_TYPE: 'proxy',
      STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true',
    };
    servers = await Promise.all([1, 2].map(() => startWeir({ policy: POLICY, env })));
    clients = servers.map(({ grpcPort }) => new RlsClient(grpcPort));
  });

  afterAll(async () => {
    for (const client of clients) client.close();
    await Promise.all(servers.map((server) => server.stop()));
    await bench.stop();
  });

  const passes = async (key: string, requests: number): Promise<number> => {
    const replies = await Promise.all(
      Array.from({ length: requests }, (_, i) =>
        (clients[i % clients.length] as RlsClient).ask('d', [descriptor([`${key}=a`])]),
      ),
    );
    expect([...new Set(replies.map(({ code, details }) => `${code} ${details}`))]).toEqual(['0 ']);
    return replies.filter(({ response }) => response?.overallCode === CODE.OK).length;
  };

  /** Returns the remaining hits of the limit that is not `tight`. */
  const left = async (key: string): Promise<number | undefined> => {
    const look = descriptor([`${key}=a`], { hitsAddend: 0 });
    const { response } = await (clients[0] as RlsClient).ask('d', [look, descriptor(['without-tight'])]);
    expect(response?.statuses[0]?.currentLimit?.name).not.toBe('tight');
    return response?.statuses[0]?.limitRemaining;
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
    const { status, body } = await httpRequest((servers[0] as WeirServer).httpPort, '/healthcheck?detail');
    expect(status).toBe(200);
    expect(body).toContain(`127.0.0.1:${bench.proxy.port}`);
  });
});
