/*
 * Tests refunds of hits that Envoy reports after the response, and limits that Envoy sends in its requests.
 * charges-page.test.ts tests charges.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
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
  - key: upload
    rate_limit: { token_bucket: { max_tokens: 3, fill_interval: 8760h } }
  - key: plan
    rate_limit: { token_bucket: { max_tokens: 100, fill_interval: 8760h } }
`;
const HALF_A_YEAR_S = (365 / 2) * 86_400;

let upstream: Server;
let weir: WeirServer;
let envoy: { port: number; stop(): Promise<unknown> };
let rls: RlsClient;

/** Starts an upstream that reports in x-tokens what the request has in x-cost. */
async function startUpstream(): Promise<number> {
  upstream = createServer((request, answer) => {
    answer.setHeader('x-tokens', String(request.headers['x-cost'] ?? '0'));
    answer.end('words\n');
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  return (upstream.address() as AddressInfo).port;
}

beforeAll(async () => {
  const upstreamPort = await startUpstream();
  weir = await startWeir({ policy: POLICY, env: { DEFAULT_ALGORITHM: 'token_bucket' } });
  rls = new RlsClient(weir.grpcPort);
  envoy = await startRouteEnvoy({
    domain: 'llm',
    weirPort: weir.grpcPort,
    upstreamPort,
    metadata: { plans: { small: { requests_per_unit: 2, unit: 'YEAR' } } },
    routes: [
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

/** Returns the status of an upload after which `refund` hits are refunded. */
const upload = async (refund: number) =>
  (await httpRequest(envoy.port, '/upload', { headers: { upload: 'ann', 'x-cost': String(refund) } })).status;

/** Waits until the bucket has this many tokens. Refunds arrive after the response. */
const untilLeft = (left: number) =>
  waitFor(`${left} tokens`, async () => {
    const { response } = await rls.ask('llm', [descriptor(['upload=ann'], { hitsAddend: 0 })]);
    return response?.statuses[0]?.limitRemaining === left;
  });

test('refunds a failed upload, but never above the capacity', async () => {
  expect(await upload(0)).toBe(200);
  await untilLeft(2);
  expect(await upload(1)).toBe(200);
  await untilLeft(2);
  expect(await upload(1000)).toBe(200);
  await untilLeft(3);
  const seen = [];
  for (let i = 0; i < 4; i++) seen.push(await upload(0));
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
