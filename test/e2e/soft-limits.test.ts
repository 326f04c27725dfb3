/* Routes by soft limits and by limits that passed, in an Envoy that selects the route again after the answer. */
import { beforeAll, expect, test } from '@jest/globals';
import { fromHeader } from '../support/envoy/route-envoy.js';
import { type RouteStack, startRouteStack } from '../support/envoy/route-stack.js';
import { httpRequest } from '../support/process/http-client.js';

const SOFT = 'token_bucket: { max_tokens: 1, fill_interval: 8760h }';
const HEADER = 'on_over: { allow: true, request_headers: [{ x-weir-over: soft }] }';
const POLICY = `
domain: models
decision_metadata: true
descriptors:
  - { key: header, rate_limit: { ${SOFT}, ${HEADER} } }
  - { key: metadata, rate_limit: { ${SOFT}, on_over: { allow: true, metadata: { model: small } } } }
  - { key: local, rate_limit: { ${SOFT}, on_store_failure: local, ${HEADER} } }
  - { key: deny, rate_limit: { ${SOFT}, on_store_failure: deny, ${HEADER} } }
  - { key: large, quota_mode: true, rate_limit: { name: large-model, ${SOFT} } }
  - { key: small, quota_mode: true, rate_limit: { name: small-model, unit: year, requests_per_unit: 9 } }
`;
const KEYS = ['header', 'metadata', 'local', 'deny', 'large', 'small'];

/** A route that tells the upstream its name. */
const route = (name: string, match: object) => ({
  match: { prefix: '/', ...match },
  route: { cluster: 'upstream' },
  request_headers_to_add: [{ header: { key: 'x-route', value: name } }],
});
const ROUTES = [
  route('by header', { headers: [{ name: 'x-weir-over', string_match: { exact: 'soft' } }] }),
  route('by metadata', {
    dynamic_metadata: [
      {
        filter: 'envoy.filters.http.ratelimit',
        path: [{ key: 'over' }, { key: 'model' }],
        value: { string_match: { exact: 'small' } },
      },
    ],
  }),
  route('by what passed', {
    dynamic_metadata: [
      {
        filter: 'envoy.filters.http.ratelimit',
        path: [{ key: 'decision' }, { key: 'passed' }, { key: 'large-model' }],
        value: { present_match: true },
      },
    ],
  }),
  route('plain', {}),
];

let stack: RouteStack;

beforeAll(async () => {
  stack = await startRouteStack({
    policy: POLICY,
    domain: 'models',
    routes: [],
    parts: {
      route_config: {
        virtual_hosts: [
          {
            name: 'all',
            domains: ['*'],
            rate_limits: KEYS.map((key) => ({ actions: [fromHeader(`x-${key}`, key)] })),
            routes: ROUTES,
          },
        ],
      },
    },
    lua: 'function envoy_on_request(handle) handle:clearRouteCache() end',
  });
});

/** Returns the route of a request with these headers. */
async function routeOf(headers: Record<string, string>): Promise<unknown> {
  const { status, body } = await httpRequest(stack.port, '/', { headers });
  expect(status).toBe(200);
  return JSON.parse(body).headers['x-route'];
}

test('a route matches the header of a request over a soft limit', async () => {
  expect(await routeOf({ 'x-header': 'a' })).toBe('plain');
  expect(await routeOf({ 'x-header': 'a' })).toBe('by header');
});

test('a client cannot hide the mark with a header of its own', async () => {
  expect(await routeOf({ 'x-header': 'b', 'x-weir-over': 'none' })).toBe('plain');
  expect(await routeOf({ 'x-header': 'b', 'x-weir-over': 'none' })).toBe('by header');
});

test('a route matches the metadata of a request over a soft limit', async () => {
  expect(await routeOf({ 'x-metadata': 'a' })).toBe('plain');
  expect(await routeOf({ 'x-metadata': 'a' })).toBe('by metadata');
});

test('a route matches the limits that passed', async () => {
  const both = { 'x-large': 'a', 'x-small': 'a' };
  expect(await routeOf(both)).toBe('by what passed');
  // The quota of the large model is used up, but not the quota of the small model.
  expect(await routeOf(both)).toBe('plain');
});

test('without Redis, requests pass with the marks of on_store_failure', async () => {
  expect(await routeOf({ 'x-header': 'c' })).toBe('plain');
  await stack.redis.stop();
  expect(await routeOf({ 'x-header': 'c' })).toBe('plain');
  expect(await routeOf({ 'x-deny': 'c' })).toBe('by header');
  expect(await routeOf({ 'x-local': 'c' })).toBe('plain');
  expect(await routeOf({ 'x-local': 'c' })).toBe('by header');
});
