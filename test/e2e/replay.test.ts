/*
 * Tests docs/operate/replay.md with a real Envoy: its log formats for Envoy, Istio and Envoy Gateway are logs that
 * `weir replay` reads with the map of the page, and it finds the decisions that weir made.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import type { Report } from '../../src/replay/report.js';
import { pageText } from '../support/docs/pages.js';
import { fromHeader, type RouteEnvoy, startRouteEnvoy } from '../support/envoy/route-envoy.js';
import { closeLater } from '../support/process/close-later.js';
import { httpRequest } from '../support/process/http-client.js';
import { runToEnd } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { startWeir, WEIR_MAIN, type WeirServer } from '../support/weir/weir.js';
import { metric } from '../support/weir/workers.js';

const page = pageText('docs/operate/replay.md');
const folder = new TempDir();
const policy = (calls: number) =>
  `domain: shop\ndescriptors: [{ key: tenant, rate_limit: { unit: year, requests_per_unit: ${calls} } }]\n`;
folder.write('policy.yaml', policy(5));
folder.write('stricter.yaml', policy(2));
folder.write('map.yaml', /```yaml\n# file: map.yaml\n(.*?)```/s.exec(page)?.[1] ?? '');

/** Returns the documents of a block of the page that contains `text`. */
function blockWith(text: string): unknown[] {
  const blocks = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, block = '']) => block);
  const block = blocks.find((one) => one.includes(text));
  if (block === undefined) throw new Error(`no block of the page contains ${text}`);
  return parseAllDocuments(block).map((document) => document.toJS());
}

type Format = Readonly<Record<string, string>>;
interface EnvoyLog {
  readonly access_log: [
    { name: string; typed_config: { path: string; log_format: { json_format: Format } } & object },
  ];
}
const [bootstrap] = blockWith('json_format') as [EnvoyLog];
const [mesh] = blockWith('envoyFileAccessLog') as [
  { meshConfig: { extensionProviders: { envoyFileAccessLog: { logFormat: { labels: Format } } }[] } },
];
const [proxy] = blockWith('kind: EnvoyProxy') as [
  { spec: { telemetry: { accessLog: { settings: { format: { type: string; json: Format } }[] } } } },
];
const FORMATS: Readonly<Record<string, Format | undefined>> = {
  Envoy: bootstrap.access_log[0].typed_config.log_format.json_format,
  // Both write these members as the json_format of a log in a file.
  Istio: mesh.meshConfig.extensionProviders[0]?.envoyFileAccessLog.logFormat.labels,
  'Envoy Gateway': proxy.spec.telemetry.accessLog.settings[0]?.format.json,
};

const logOf = (product: string) => folder.join(`${product.replace(' ', '-')}.log`);
/** The log of the page, with another path and format. */
const accessLog = Object.entries(FORMATS).map(([product, json_format]) => {
  const [log] = bootstrap.access_log;
  return { ...log, typed_config: { ...log.typed_config, path: logOf(product), log_format: { json_format } } };
});

const TYPES = 'type.googleapis.com/envoy.extensions.filters.http';
/** Denies requests with x-forbidden before the rate limit filter. */
const RBAC = {
  name: 'envoy.filters.http.rbac',
  typed_config: {
    '@type': `${TYPES}.rbac.v3.RBAC`,
    rules: {
      action: 'DENY',
      policies: {
        forbidden: {
          permissions: [{ any: true }],
          principals: [{ header: { name: 'x-forbidden', present_match: true } }],
        },
      },
    },
  },
};

interface Call {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly status: number;
}
const call = (path: string, tenant: string | undefined, status: number, more = {}): Call => ({
  path,
  headers: { ...(tenant !== undefined && { 'x-tenant': tenant }), ...more },
  status,
});
const CALLS: readonly Call[] = [
  ...Array.from({ length: 5 }, () => call('/api/a', 'acme', 200)),
  ...Array.from({ length: 3 }, () => call('/api/a?long=1', 'acme', 429)),
  // Without the header, Envoy sends no descriptor. With an empty one, the descriptor has an empty value.
  call('/api/a', undefined, 200),
  call('/api/a', '', 200),
  // No route has this path.
  call('/elsewhere', 'acme', 404),
  call('/api/a', 'zoo', 403, { 'x-forbidden': 'yes' }),
  // The upstream's own 429, which weir has allowed.
  call('/api/busy', 'zoo', 429),
  call('/api/a', 'zoo', 200),
];

let weir: WeirServer;
let envoy: RouteEnvoy;

beforeAll(async () => {
  const upstream = createServer((request, response) => {
    response.writeHead(request.url === '/api/busy' ? 429 : 200).end('words\n');
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  closeLater(upstream, () => {
    upstream.closeAllConnections();
    upstream.close();
  });
  weir = await startWeir({
    policy: policy(5),
    env: { DECISION_LOG_SAMPLE: 'denied=1,ok=1', DECISION_LOG_FILE: folder.join('decisions.jsonl') },
  });
  envoy = await startRouteEnvoy({
    domain: 'shop',
    weirPort: weir.grpcPort,
    upstreamPort: (upstream.address() as AddressInfo).port,
    routes: [{ path: '/api/', rateLimits: [{ actions: [fromHeader('x-tenant', 'tenant')] }] }],
    filtersBefore: [RBAC],
    accessLog,
  });
  for (const { path, headers, status } of CALLS)
    expect((await httpRequest(envoy.port, path, { headers })).status).toBe(status);
});

/** Runs `weir replay`, and returns its exit code and its report. */
async function replay(...args: readonly string[]): Promise<{ code: number | null; report: Report }> {
  const all = [WEIR_MAIN, 'replay', '--by', 'tenant', '--json', 'report.json', ...args];
  const { code, stderr } = await runToEnd(process.execPath, all, { cwd: folder.path });
  expect(stderr).toBe('');
  return { code, report: JSON.parse(readFileSync(folder.join('report.json'), 'utf8')) as Report };
}

const counted = (code: string) =>
  metric(weir, `weir_decisions_total{domain="shop",rule="tenant",code="${code}"}`);

describe.each(Object.keys(FORMATS))("the page's log of %s", (product) => {
  beforeAll(() =>
    waitFor(`the log of ${product}`, () => {
      const text = existsSync(logOf(product)) ? readFileSync(logOf(product), 'utf8') : '';
      return text.split('\n').length > CALLS.length || undefined;
    }),
  );

  test('says what weir decided, and a replay with the same policy decides the same', async () => {
    const { code, report } = await replay('--policy', 'policy.yaml', '--map', 'map.yaml', logOf(product));
    expect(code).toBe(0);
    const [denied, allowed] = [await counted('OVER_LIMIT'), await counted('OK')];
    expect([denied, allowed]).toEqual([3, 8]);
    expect(report).toMatchObject({
      lines: CALLS.length,
      total: { requests: denied + allowed, before: denied, after: denied, newlyDenied: 0, newlyAllowed: 0 },
      unreadable: [],
    });
    expect(report.noRequests.reduce((sum, { lines }) => sum + lines, 0)).toBe(3);
  });

  test('tells who a stricter limit would affect, and fails the gate', async () => {
    const args = ['--policy', 'stricter.yaml', '--map', 'map.yaml', '--max-newly-denied', '10%'];
    const { code, report } = await replay(...args, logOf(product));
    expect(code).toBe(3);
    expect(report.callers?.rows).toMatchObject([
      { caller: 'acme', requests: 8, before: 3, after: 6, newlyDenied: 3 },
      { caller: 'zoo', requests: 2, before: 0, after: 0, newlyDenied: 0 },
      { caller: '', requests: 1, before: 0, after: 0, newlyDenied: 0 },
    ]);
  });
});

test("weir's decision log needs no map", async () => {
  await waitFor(
    'the decision log',
    () => readFileSync(folder.join('decisions.jsonl'), 'utf8').split('\n').length > 10 || undefined,
  );
  const { code, report } = await replay('--policy', 'policy.yaml', 'decisions.jsonl');
  expect(code).toBe(0);
  expect(report.total).toMatchObject({ requests: 11, before: 3, after: 3, newlyDenied: 0, newlyAllowed: 0 });
});

test('the gate of the page compares two policies', async () => {
  const [, command = ''] = /```sh\n(weir replay .*)\n```/.exec(page) ?? [];
  folder.write('new.yaml', policy(2));
  folder.write('access.log', readFileSync(logOf('Envoy'), 'utf8'));
  const gate = async (text: string) => {
    const args = text.split(' ').slice(1);
    const { code, stdout } = await runToEnd(process.execPath, [WEIR_MAIN, ...args], { cwd: folder.path });
    return { code, stdout };
  };
  expect(await gate(command)).toMatchObject({
    code: 3,
    stdout: expect.stringMatching(/^3 of 11 requests would/),
  });
  expect((await gate(command.replace('0.1%', '30%'))).code).toBe(0);
  folder.write('access.log', `${readFileSync(logOf('Envoy'), 'utf8')}[2026-11-20] "GET /a HTTP/1.1" 200 -\n`);
  expect((await gate(command)).code).toBe(4);
});

test('the resources of Istio and Envoy Gateway name their provider and the type of the format', () => {
  const [, telemetry] = blockWith('envoyFileAccessLog') as [
    unknown,
    { spec: { accessLogging: { providers: { name: string }[] }[] } },
  ];
  const provider = mesh.meshConfig.extensionProviders[0] as unknown as { name: string };
  expect(telemetry.spec.accessLogging[0]?.providers).toEqual([{ name: provider.name }]);
  expect(proxy.spec.telemetry.accessLog.settings[0]?.format.type).toBe('JSON');
});
