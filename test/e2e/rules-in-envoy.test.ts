/*
 * Tests rules that other rate limit services do not have, with requests from a real Envoy: its addresses and paths,
 * several limits on one key, partial enforcement, and days of a time zone.
 */
import type { Server } from 'node:http';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { fromHeader, startRouteEnvoy } from '../support/envoy/route-envoy.js';
import { startUpstream } from '../support/envoy/stack.js';
import { headerOf, httpRequest } from '../support/process/http-client.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const POLICY = `
domain: edge
response_headers: [x-ratelimit]
descriptors:
  - key: remote_address
    value_cidr: [10.0.0.0/8, "2001:db8::/32"] # the deny list
    rate_limit: { unit: year, requests_per_unit: 0 }
  - key: remote_address
    value_cidr: 10.1.0.0/16 # but not these
    rate_limit: { unlimited: true }
  - key: remote_address
    rate_limit: { token_bucket: { max_tokens: 2, fill_interval: 8760h } }
  - key: masked_remote_address
    value_cidr: 192.0.2.0/24
    rate_limit: { token_bucket: { max_tokens: 1, fill_interval: 8760h } }
  - key: path
    value_regex: '/v[0-9]+/orders(/[^?]*)?'
    share_threshold: true
    rate_limit: { token_bucket: { max_tokens: 2, fill_interval: 8760h } }
  - key: tenant
    rate_limits:
      - { name: burst, token_bucket: { max_tokens: 3, fill_interval: 8760h } }
      - { name: yearly, unit: year, requests_per_unit: 100 }
  - key: trial
    rate_limits:
      - { name: burst, token_bucket: { max_tokens: 100, fill_interval: 8760h } }
      - { name: yearly, unit: year, requests_per_unit: 2 }
  - key: canary
    enforce_percent: 0
    rate_limit: { token_bucket: { max_tokens: 1, fill_interval: 8760h } }
  - key: office
    rate_limit: { unit: day, requests_per_unit: 2, calendar: Europe/Berlin }
`;

let upstream: { server: Server; port: number };
let weir: WeirServer;
let envoy: { port: number; stop(): Promise<unknown> };

beforeAll(async () => {
  upstream = await startUpstream();
  weir = await startWeir({ policy: POLICY });
  envoy = await startRouteEnvoy({
    domain: 'edge',
    weirPort: weir.grpcPort,
    upstreamPort: upstream.port,
    routes: [
      { path: '/from', rateLimits: [{ actions: [{ remote_address: {} }] }] },
      {
        path: '/network',
        rateLimits: [{ actions: [{ masked_remote_address: { v4_prefix_mask_len: 24 } }] }],
      },
      { path: '/v', rateLimits: [{ actions: [fromHeader(':path', 'path')] }] },
      {
        path: '/',
        rateLimits: ['tenant', 'trial', 'canary', 'office'].map((key) => ({ actions: [fromHeader(key)] })),
      },
    ],
  });
});

const get = (path: string, headers: Record<string, string> = {}) =>
  httpRequest(envoy.port, path, { headers });
const from = async (path: string, address: string) =>
  (await get(path, { 'x-forwarded-for': address })).status;

/** Returns status, limit and remaining of sequential, equal requests. */
async function seen(count: number, path: string, headers: Record<string, string>): Promise<string[]> {
  const lines: string[] = [];
  for (; count > 0; count--) {
    const answer = await get(path, headers);
    const limits = ['x-ratelimit-limit', 'x-ratelimit-remaining'].map((name) => headerOf(answer, name));
    lines.push([answer.status, ...limits].join(' '));
  }
  return lines;
}

describe('addresses', () => {
  test('on the deny list are denied', async () => {
    for (const address of ['10.2.3.4', '10.255.255.255', '2001:db8::1', '2001:db8:ffff::'])
      expect([address, await from('/from', address)]).toEqual([address, 429]);
  });

  test('in a longer prefix are allowed', async () => {
    for (let i = 0; i < 5; i++) expect(await from('/from', '10.1.2.3')).toBe(200);
  });

  test('on no list have one bucket each', async () => {
    for (const address of ['11.0.0.1', '9.255.255.255', '2001:db9::1']) {
      const statuses = [];
      for (let i = 0; i < 3; i++) statuses.push(await from('/from', address));
      expect([address, ...statuses]).toEqual([address, 200, 200, 429]);
    }
  });

  test('that Envoy masks share one bucket per network', async () => {
    expect(await from('/network', '192.0.2.1')).toBe(200);
    expect(await from('/network', '192.0.2.77')).toBe(429);
    expect(await from('/network', '192.0.3.1')).toBe(200);
    expect(await from('/network', '192.0.3.1')).toBe(200);
  });
});

test('a regular expression on :path must match the whole path', async () => {
  const paths = [
    '/v1/orders',
    '/v2/orders/7',
    '/v3/orders',
    '/v3/orders-of-others',
    '/v3/ordersx',
    '/vx/orders',
  ];
  const statuses = [];
  for (const path of paths) statuses.push((await get(path)).status);
  expect(statuses).toEqual([200, 200, 429, 200, 200, 200]);
});

describe('several limits on one key', () => {
  test('the bucket denies first', async () => {
    expect(await seen(4, '/', { tenant: 'ann' })).toEqual(['200 3 2', '200 3 1', '200 3 0', '429 3 0']);
  });

  test('the window denies first', async () => {
    expect(await seen(3, '/', { trial: 'ann' })).toEqual(['200 2 1', '200 2 0', '429 2 0']);
  });
});

test('enforce_percent 0 allows denied requests, and reports them', async () => {
  expect((await get('/', { canary: 'ann' })).status).toBe(200);
  const passed = await get('/', { canary: 'ann' });
  expect(passed.status).toBe(200);
  expect(headerOf(passed, 'x-ratelimit-will-be-throttled')).toBe('true');
});

test('a day ends at midnight in the time zone of the calendar', async () => {
  const denied = (await seen(3, '/', { office: 'ann' })).at(-1);
  expect(denied).toBe('429 2 0');
  const reset = Number(headerOf(await get('/', { office: 'ann' }), 'x-ratelimit-reset'));
  const there = new Intl.DateTimeFormat('en-GB', { timeZone: 'Europe/Berlin', timeStyle: 'medium' });
  expect(there.format(reset * 1000)).toBe('00:00:00');
  expect(reset - Date.now() / 1000).toBeLessThanOrEqual(25 * 3600);
});
