/*
 * Tests charges for calls whose cost is known only when they end: Envoy peeks with hits_addend 0, and charges the
 * reported cost after the response. Also tests refunds, and limits that Envoy sends in its requests.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { fromHeader, startRouteEnvoy } from '../support/envoy/route-envoy.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { headerOf, httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const POLICY = `
domain: llm
response_headers: [x-ratelimit]
descriptors:
  # A thousand tokens a year; what a call took may go up to 500 past empty.
  - key: tenant
    rate_limit: { token_bucket: { max_tokens: 1000, tokens_per_fill: 1000, fill_interval: 8760h }, allow_debt: true, max_debt: 500 }
  # Filled so fast that a test can wait for it.
  - key: fast
    rate_limit: { token_bucket: { max_tokens: 1000, tokens_per_fill: 1000, fill_interval: 2s }, allow_debt: true }
  - key: yearly
    rate_limit: { algorithm: fixed_window, unit: year, requests_per_unit: 1000, allow_debt: true }
  - key: upload
    rate_limit: { token_bucket: { max_tokens: 3, fill_interval: 8760h } }
  - key: plan
    rate_limit: { token_bucket: { max_tokens: 100, fill_interval: 8760h } }
`;
const HALF_A_YEAR_S = (365 / 2) * 86_400;

/** Peeks first, and charges the cost that the upstream reports in x-tokens. */
const peekThenCharge = (header: string) => [
  { actions: [fromHeader(header)], hits_addend: { number: 0 } },
  { actions: [fromHeader(header)], hits_addend: { format: '%RESP(x-tokens)%' }, apply_on_stream_done: true },
];

let upstream: Server;
let weir: WeirServer;
let envoy: { port: number; stop(): Promise<unknown> };
let rls: RlsClient;

/** Starts an upstream that reports the cost in x-tokens; the request sets it in x-cost. */
async function startModel(): Promise<number> {
  upstream = createServer((request, answer) => {
    answer.setHeader('x-tokens', String(request.headers['x-cost'] ?? '0'));
    answer.end('words\n');
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  return (upstream.address() as AddressInfo).port;
}

beforeAll(async () => {
  const upstreamPort = await startModel();
  weir = await startWeir({ policy: POLICY, env: { DEFAULT_ALGORITHM: 'token_bucket' } });
  rls = new RlsClient(weir.grpcPort);
  envoy = await startRouteEnvoy({
    domain: 'llm',
    weirPort: weir.grpcPort,
    upstreamPort,
    metadata: { plans: { small: { requests_per_unit: 2, unit: 'YEAR' } } },
    routes: [
      { path: '/complete', rateLimits: ['tenant', 'fast', 'yearly'].flatMap(peekThenCharge) },
      {
        path: '/upload',
        rateLimits: [
          { actions: [fromHeader('upload')] },
          // Refunds the hits of a failed upload.
          {
            actions: [fromHeader('upload')],
            hits_addend: { format: '%RESP(x-tokens)%', is_negative_hits: true },
            apply_on_stream_done: true,
          },
        ],
      },
      {
        path: '/plan',
        rateLimits: [
          {
            actions: [fromHeader('plan')],
            limit: { dynamic_metadata: { metadata_key: { key: 'plans', path: [{ key: 'small' }] } } },
          },
        ],
      },
    ],
  });
});
afterAll(() => {
  upstream?.closeAllConnections();
  upstream?.close();
});

/** Returns the status of a call with the given cost. */
const call = async (path: string, key: string, value: string, cost = 0) =>
  (await httpRequest(envoy.port, path, { headers: { [key]: value, 'x-cost': String(cost) } })).status;

/** Returns the response to a peek. */
async function peek(key: string, value: string) {
  const { response } = await rls.ask('llm', [descriptor([`${key}=${value}`], { hitsAddend: 0 })]);
  const status = response?.statuses[0];
  return {
    ok: status?.code === CODE.OK,
    left: status?.limitRemaining,
    wait: status?.durationUntilResetSeconds,
  };
}

/** Waits until the bucket has this many tokens; charges and refunds arrive after the response. */
const untilLeft = (key: string, value: string, left: number, ok = left > 0) =>
  waitFor(`${left} left of ${key}=${value}`, async () => {
    const status = await peek(key, value);
    return (status.ok === ok && status.left === left) || undefined;
  });

test('charges a call when it ends, below zero if needed, and denies the next call', async () => {
  expect(await call('/complete', 'tenant', 'ann', 400)).toBe(200);
  await untilLeft('tenant', 'ann', 600);
  // The charge is 300 more than the bucket has. Peeks took nothing.
  expect(await call('/complete', 'tenant', 'ann', 900)).toBe(200);
  await untilLeft('tenant', 'ann', 0);
  expect(await call('/complete', 'tenant', 'ann', 1)).toBe(429);
  expect(await call('/complete', 'tenant', 'bob', 1)).toBe(200);
  // The bucket refills a thousand tokens a year, and needs 301.
  const { wait = 0 } = await peek('tenant', 'ann');
  expect(Math.abs(wait - 0.301 * 365 * 86_400)).toBeLessThan(60);
});

test('forgives debt above max_debt', async () => {
  expect(await call('/complete', 'tenant', 'carl', 100_000)).toBe(200);
  await untilLeft('tenant', 'carl', 0);
  const { wait = 0 } = await peek('tenant', 'carl');
  expect(Math.abs(wait - 0.501 * 365 * 86_400)).toBeLessThan(60);
});

test('pays the debt back by refills', async () => {
  // The refill takes nearly two seconds.
  expect(await call('/complete', 'fast', 'ann', 1950)).toBe(200);
  await waitFor('the charge', async () => !(await peek('fast', 'ann')).ok || undefined);
  expect(await call('/complete', 'fast', 'ann', 1)).toBe(429);
  await waitFor('the debt to be paid', async () => (await peek('fast', 'ann')).ok || undefined);
  expect(await call('/complete', 'fast', 'ann', 1)).toBe(200);
});

test('also charges a window in full', async () => {
  expect(await call('/complete', 'yearly', 'ann', 999)).toBe(200);
  await untilLeft('yearly', 'ann', 1);
  expect(await call('/complete', 'yearly', 'ann', 500)).toBe(200);
  await untilLeft('yearly', 'ann', 0);
  expect(await call('/complete', 'yearly', 'ann', 1)).toBe(429);
});

test('refunds a failed upload, but never above the capacity', async () => {
  expect(await call('/upload', 'upload', 'ann', 0)).toBe(200);
  await untilLeft('upload', 'ann', 2);
  expect(await call('/upload', 'upload', 'ann', 1)).toBe(200);
  await untilLeft('upload', 'ann', 2);
  expect(await call('/upload', 'upload', 'ann', 1000)).toBe(200);
  await untilLeft('upload', 'ann', 3);
  const seen = [];
  for (let i = 0; i < 4; i++) seen.push(await call('/upload', 'upload', 'ann', 0));
  expect(seen).toEqual([200, 200, 200, 429]);
});

test('enforces a limit that Envoy sends as a token bucket with DEFAULT_ALGORITHM=token_bucket', async () => {
  const get = () => httpRequest(envoy.port, '/plan', { headers: { plan: 'small' } });
  const first = await get();
  expect([
    first.status,
    headerOf(first, 'x-ratelimit-limit'),
    headerOf(first, 'x-ratelimit-remaining'),
  ]).toEqual([...[200, '2', '1']]);
  expect((await get()).status).toBe(200);
  const denied = await get();
  expect(denied.status).toBe(429);
  // A window would end with the year; a token bucket has its next token in half a year.
  const wait = Number(headerOf(denied, 'x-ratelimit-reset')) - Date.now() / 1000;
  expect(Math.abs(wait - HALF_A_YEAR_S)).toBeLessThan(60);
});
