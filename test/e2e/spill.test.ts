/* A chain of limits behind Envoy: the header of the response names the limit that paid. */
import type { Server } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startEchoUpstream } from '../../deploy/demo/echo-upstream.js';
import { fromHeader, startRouteEnvoy } from '../support/envoy/route-envoy.js';
import { headerOf, headersLike, httpRequest } from '../support/process/http-client.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const POLICY = `
domain: paid
response_headers: [x-ratelimit, ratelimit]
descriptors:
  - key: tenant
    rate_limits:
      - { name: plan, then: credits, token_bucket: { max_tokens: 1, fill_interval: 8760h } }
      - { name: credits, token_bucket: { max_tokens: 1, fill_interval: 8760h } }
`;

let upstream: { server: Server; port: number };
let redis: RedisServer;
let weir: WeirServer;
let envoy: { port: number; stop(): Promise<unknown> };

beforeAll(async () => {
  upstream = await startEchoUpstream(0);
  redis = await startRedis();
  weir = await startWeir({ policy: POLICY, env: { REDIS_URL: `127.0.0.1:${redis.port}`, WORKERS: '2' } });
  envoy = await startRouteEnvoy({
    domain: 'paid',
    weirPort: weir.grpcPort,
    upstreamPort: upstream.port,
    routes: [
      {
        path: '/',
        rateLimits: [{ actions: [fromHeader('x-tenant', 'tenant')] }],
        place: 'virtual_host',
      },
    ],
  });
}, 60_000);
afterAll(async () => {
  await envoy?.stop();
  await weir?.stop();
  await redis?.stop();
  upstream?.server.closeAllConnections();
  upstream?.server.close();
}, 60_000);

test('the response names the limit that paid', async () => {
  const found: unknown[] = [];
  for (let i = 0; i < 3; i++) {
    const answer = await httpRequest(envoy.port, '/', { headers: { 'x-tenant': 'acme' } });
    const [[, payer = ''] = []] = headersLike(answer, 'x-ratelimit-spilled');
    found.push([answer.status, headerOf(answer, 'ratelimit').replace(/;.*/, ''), payer]);
  }
  expect(found).toEqual([
    [200, '"plan"', ''],
    [200, '"credits"', 'credits'],
    [429, '"plan"', ''],
  ]);
});
