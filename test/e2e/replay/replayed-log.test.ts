/*
 * Sends requests through a real Envoy and a real weir, and replays Envoy's own log with the same policy. Each decision
 * must be the same, except those that the times in the log leave open. With WEIR_TEST_FULL, there are ten times as many
 * requests.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ReplayReport } from '../../../src/replay/report/report.js';
import { startEnvoyWith } from '../../support/envoy/envoy.js';
import { freePorts } from '../../support/process/free-port.js';
import { waitFor } from '../../support/process/wait-for.js';
import { runCommands } from '../../support/weir/commands.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';

const REQUESTS = process.env['WEIR_TEST_FULL'] === undefined ? 5000 : 50_000;
const TENANTS = 200;
const CONNECTIONS = 16;
/** Requests at the beginning, which take longer. Each has its own tenant, so their order does not matter. */
const WARM_UP = 1000;

const POLICY = `domain: shop
decision_metadata: true
descriptors:
  - key: tenant
    rate_limit: { token_bucket: { max_tokens: 6, fill_interval: 20s } }
    descriptors:
      - key: path
        rate_limit: { unit: minute, requests_per_unit: 15 }
`;

/** The times of the logs: the start with milliseconds, and also the decision with microseconds. */
const LOGS = {
  millis: { start_time: '%START_TIME%' },
  micros: {
    start_time: '%START_TIME%',
    decided_at: '%DYNAMIC_METADATA(envoy.filters.http.ratelimit:decision:decided_at)%',
  },
} as const;

const TYPES = 'type.googleapis.com/envoy.extensions';
const folder = mkdtempSync(join(tmpdir(), 'weir-replay-'));
const logOf = (name: string) => join(folder, `${name}.json`);
const policy = join(folder, 'policy.yaml');
const envoyFile = join(folder, 'envoy.json');
let port = 0;
let upstream: Server;
let weir: WeirServer;
let envoy: { stop(): Promise<unknown> };
/** Number of requests that were answered with 429. */
let denied = 0;

function bootstrap(adminPort: number, upstreamPort: number): string {
  const address = (of: number) => ({ socket_address: { address: '127.0.0.1', port_value: of } });
  const cluster = (name: string, of: number, more: object = {}) => ({
    name,
    type: 'STATIC',
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: address(of) } }] }],
    },
    ...more,
  });
  const header = (name: string, key: string) => ({
    request_headers: { header_name: name, descriptor_key: key },
  });
  const manager = {
    '@type': `${TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: 'in',
    access_log: Object.entries(LOGS).map(([name, times]) => ({
      name: 'envoy.access_loggers.file',
      typed_config: {
        '@type': `${TYPES}.access_loggers.file.v3.FileAccessLog`,
        path: logOf(name),
        log_format: {
          json_format: {
            ...times,
            duration: '%DURATION%',
            code: '%RESPONSE_CODE%',
            flags: '%RESPONSE_FLAGS%',
            path: '%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%',
            tenant: '%REQ(X-TENANT)%',
          },
        },
      },
    })),
    route_config: {
      virtual_hosts: [
        {
          name: 'all',
          domains: ['*'],
          routes: [
            {
              match: { prefix: '/' },
              route: {
                cluster: 'upstream',
                rate_limits: [
                  { actions: [header('x-tenant', 'tenant')] },
                  { actions: [header('x-tenant', 'tenant'), header(':path', 'path')] },
                ],
              },
            },
          ],
        },
      ],
    },
    http_filters: [
      {
        name: 'envoy.filters.http.ratelimit',
        typed_config: {
          '@type': `${TYPES}.filters.http.ratelimit.v3.RateLimit`,
          domain: 'shop',
          timeout: '10s',
          failure_mode_deny: true,
          rate_limit_service: {
            grpc_service: { envoy_grpc: { cluster_name: 'weir' } },
            transport_api_version: 'V3',
          },
        },
      },
      {
        name: 'envoy.filters.http.router',
        typed_config: { '@type': `${TYPES}.filters.http.router.v3.Router` },
      },
    ],
  };
  const http2 = {
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
        '@type': `${TYPES}.upstreams.http.v3.HttpProtocolOptions`,
        explicit_http_config: { http2_protocol_options: {} },
      },
    },
  };
  return JSON.stringify({
    admin: { address: address(adminPort) },
    static_resources: {
      listeners: [
        {
          name: 'in',
          address: address(port),
          filter_chains: [
            {
              filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }],
            },
          ],
        },
      ],
      clusters: [cluster('upstream', upstreamPort), cluster('weir', weir.grpcPort, http2)],
    },
  });
}

/** Sends requests of random tenants. Resolves when all are answered. */
async function sendAll(): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  let seed = 1;
  let warmUp = WARM_UP;
  let left = REQUESTS - WARM_UP;
  const next = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed;
  };
  const send = (tenant: string, path: string) =>
    new Promise<number>((resolve, reject) => {
      request({ port, path, host: '127.0.0.1', agent, headers: { 'x-tenant': tenant } }, (response) => {
        response.resume().once('end', () => resolve(response.statusCode ?? 0));
      })
        .once('error', reject)
        .end();
    });
  const sender = async (): Promise<void> => {
    while (warmUp-- > 0) expect(await send(`warm-up-${warmUp}`, '/')).toBe(200);
    while (left-- > 0) {
      const status = await send(`tenant-${next() % TENANTS}`, next() % 2 === 0 ? '/a' : '/b');
      if (status === 429) denied++;
      else expect(status).toBe(200);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, sender));
  agent.destroy();
}

beforeAll(async () => {
  upstream = createServer((_request, response) => response.end('fine'));
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  weir = await startWeir({ policy: POLICY });
  const [first = 0, adminPort = 0] = await freePorts(2);
  port = first;
  writeFileSync(policy, POLICY);
  const text = bootstrap(adminPort, (upstream.address() as AddressInfo).port);
  writeFileSync(envoyFile, text);
  envoy = await startEnvoyWith(text, adminPort, 1);
  await sendAll();
  for (const name of Object.keys(LOGS))
    await waitFor('the whole log', () =>
      readFileSync(logOf(name), 'latin1').split('\n').length > REQUESTS ? true : undefined,
    );
}, 300_000);

afterAll(async () => {
  await envoy?.stop();
  await weir?.stop();
  upstream?.closeAllConnections();
  upstream?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Replays a log, and returns the report. */
async function replay(log: string, ...options: readonly string[]): Promise<ReplayReport> {
  const [result] = await runCommands([
    {
      args: ['replay', '--policy', policy, '--envoy', envoyFile, '--json', '-', ...options, logOf(log)],
      folder,
    },
  ]);
  expect(result).toMatchObject({ code: 0, stderr: '' });
  return JSON.parse(result?.stdout ?? '') as ReplayReport;
}

/** Returns the longest time from the start of a request to its decision after the warm-up, in milliseconds. */
function longestDelay(): number {
  const lines = readFileSync(logOf('micros'), 'utf8').trimEnd().split('\n');
  const later = lines.filter((line) => !line.includes('"warm-up-'));
  const delays = later.map((line) => {
    const { start_time, decided_at } = JSON.parse(line) as Readonly<Record<string, string>>;
    return Date.parse(decided_at ?? '') - Date.parse(start_time ?? '');
  });
  return Math.max(...delays);
}

test.each([
  { log: 'micros', most: 0.01 },
  { log: 'millis', most: 0.05 },
])('a replay of the log with $log has the same decisions', async ({ log, most }) => {
  const options = log === 'micros' ? [] : ['--slack', `${longestDelay() + 1}ms`];
  const { total, log: summary } = await replay(log, ...options);
  const shown = JSON.stringify({ options, total, summary });
  expect([shown, summary.requests]).toEqual([shown, REQUESTS]);
  expect(denied).toBeGreaterThan(REQUESTS / 10);
  expect([shown, total.deniedBefore]).toEqual([shown, denied]);
  expect([shown, total.newlyDenied.least, total.newlyAllowed.least]).toEqual([shown, 0, 0]);
  expect([shown, total.uncertain / REQUESTS < most]).toEqual([shown, true]);
});
