/* Tests rules that match what a real Envoy sends: addresses and paths. */
import type { Server } from 'node:http';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { fromHeader, startRouteEnvoy } from '../support/envoy/route-envoy.js';
import { startUpstream } from '../support/envoy/stack.js';
import { httpRequest } from '../support/process/http-client.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const POLICY = `
domain: edge
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
    ],
  });
});

const from = async (path: string, address: string) =>
  (await httpRequest(envoy.port, path, { headers: { 'x-forwarded-for': address } })).status;

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
  for (const path of paths) statuses.push((await httpRequest(envoy.port, path)).status);
  expect(statuses).toEqual([200, 200, 429, 200, 200, 200]);
});
