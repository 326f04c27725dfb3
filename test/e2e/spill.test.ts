/* A chain of limits behind Envoy: the header of the response names the limit that paid. */
import { beforeAll, expect, test } from '@jest/globals';
import { fromHeader } from '../support/envoy/route-envoy.js';
import { type RouteStack, startRouteStack } from '../support/envoy/route-stack.js';
import { headerOf, headersLike, httpRequest } from '../support/process/http-client.js';

const POLICY = `
domain: paid
response_headers: [x-ratelimit, ratelimit]
descriptors:
  - key: tenant
    rate_limits:
      - { name: plan, then: credits, token_bucket: { max_tokens: 1, fill_interval: 8760h } }
      - { name: credits, token_bucket: { max_tokens: 1, fill_interval: 8760h } }
`;

let stack: RouteStack;

beforeAll(async () => {
  stack = await startRouteStack({
    policy: POLICY,
    env: { WORKERS: '2' },
    domain: 'paid',
    routes: [
      {
        path: '/',
        rateLimits: [{ actions: [fromHeader('x-tenant', 'tenant')] }],
        place: 'virtual_host',
      },
    ],
  });
});

test('the response names the limit that paid', async () => {
  const found: unknown[] = [];
  for (let i = 0; i < 3; i++) {
    const answer = await httpRequest(stack.port, '/', { headers: { 'x-tenant': 'acme' } });
    const [[, payer = ''] = []] = headersLike(answer, 'x-ratelimit-spilled');
    found.push([answer.status, headerOf(answer, 'ratelimit').replace(/;.*/, ''), payer]);
  }
  expect(found).toEqual([
    [200, '"plan"', ''],
    [200, '"credits"', 'credits'],
    [429, '"plan"', ''],
  ]);
});
