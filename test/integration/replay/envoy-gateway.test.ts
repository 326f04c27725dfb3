/* Tests replays of Envoy Gateway's logs, whose entries have keys that people do not know. */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import type { ReplayReport } from '../../../src/replay/report/report.js';
import { commandFolder } from '../../support/weir/command-folder.js';

const { folder, host } = commandFolder();

const ROUTE = 'httproute/default/shop/rule/0/match/0/api_example_com';
const LIMIT = 'limit: { requests: 1, unit: Hour }';
const distinct = (header: string): string =>
  `{ clientSelectors: [{ headers: [{ name: ${header}, type: Distinct }] }], ${LIMIT} }`;
const gateway = (rules: string): string => `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: eg }
spec: { listeners: [{ name: a, port: 80, protocol: HTTP }] }
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: shop }
spec: { parentRefs: [{ name: eg }], rules: [{}] }
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: { name: p }
spec:
  targetRefs: [{ kind: HTTPRoute, name: shop }]
  rateLimit: { type: Global, global: { rules: [${rules}] } }
`;
const ENVOY_PROXY = `---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyProxy
metadata: { name: proxy }
spec:
  telemetry:
    accessLog:
      settings:
        - format:
            type: JSON
            json: { start_time: "%START_TIME%", route_name: "%ROUTE_NAME%", x-tenant: "%REQ(X-TENANT)%",
                    authorization: "%REQ(AUTHORIZATION)%" }
`;
folder.write('gateway.yaml', gateway(distinct('X-Tenant')) + ENVOY_PROXY);
folder.write('keys.yaml', gateway(distinct('authorization')) + ENVOY_PROXY);
folder.write('twice.yaml', gateway(`${distinct('x-tenant')}, ${distinct('x-tenant')}`) + ENVOY_PROXY);
const lines = ['acme', 'zoo', 'acme', 'acme'].map((tenant, second) =>
  JSON.stringify({
    start_time: `2026-11-20T09:00:0${second}.000001Z`,
    route_name: ROUTE,
    'x-tenant': tenant,
    authorization: `of-${tenant}`,
  }),
);
folder.write('access.log', `${lines.join('\n')}\n`);
folder.write(
  'new.yaml',
  `domain: default/eg/a
descriptors:
  - key: "${ROUTE}"
    value: "${ROUTE}"
    descriptors: [{ key: rule-0-match-0, rate_limit: { unit: hour, requests_per_unit: 1 } }]
`,
);

const run = (...args: readonly string[]) => host.run({ args, folder: folder.path });
const replay = (envoy: string, by: string, ...args: readonly string[]) =>
  run('replay', '--policy', 'new.yaml', '--envoy', envoy, '--by', by, ...args, 'access.log');

test.each(['rule-0-match-0', 'x-tenant', 'X-Tenant'])(
  '--by %s names the callers by their header',
  async (by) => {
    const gate = `${by}=*:0`;
    const { code, stdout, stderr } = await replay(
      'gateway.yaml',
      by,
      ...['--max-newly-denied', gate, '--html', 'report.html', '--json', 'report.json'],
    );
    expect(code).toBe(3);
    expect(stdout).toContain('1 of 2 callers (x-tenant) would lose requests: acme 2 of 3 (67%).');
    expect(stdout).toContain('before and after the change, by x-tenant:\nX-TENANT  REQUESTS');
    expect(stderr).toContain(
      'x-tenant=*:0: failed: more requests of 1 of 2 callers (x-tenant) would be newly denied',
    );
    expect(readFileSync(`${folder.path}/report.html`, 'utf8')).toContain(
      '1 of 2 callers (x-tenant) would lose',
    );
    const { groups } = JSON.parse(readFileSync(`${folder.path}/report.json`, 'utf8')) as ReplayReport;
    expect(groups).toMatchObject({ by: 'rule-0-match-0', source: 'x-tenant', count: 2 });
  },
);

test('an unknown or ambiguous name lists the entries with their headers', async () => {
  const list = /its entries are .*, rule-0-match-0 \(x-tenant\)/;
  expect((await replay('gateway.yaml', 'tenant')).stderr).toMatch(list);
  const { stderr } = await replay('twice.yaml', 'x-tenant');
  expect(stderr).toMatch(/rule-0-match-0 \(x-tenant\), rule-1-match-0 \(x-tenant\)/);
});

test('values of a header with credentials are redacted', async () => {
  const { stdout } = await replay('keys.yaml', 'authorization');
  expect(stdout).toContain('1 of 2 callers (authorization) would lose requests: [redacted');
  expect(stdout).not.toContain('of-acme');
});

test('a missing EnvoyProxy is named if the log has the header', async () => {
  folder.write('no-proxy.yaml', gateway(distinct('x-tenant')));
  const members = [
    'method',
    'x-envoy-origin-path',
    'protocol',
    'response_code',
    'response_flags',
    'bytes_received',
  ];
  const more = ['bytes_sent', 'duration', 'user-agent', 'x-request-id', ':authority', 'upstream_host'];
  const defaults = Object.fromEntries([...members, ...more].map((name) => [name, '-']));
  const texts = lines.map((line) => JSON.stringify({ ...defaults, ...(JSON.parse(line) as object) }));
  folder.write('default.log', `${texts.join('\n')}\n`);
  const args = ['--policy', 'new.yaml', '--envoy', 'no-proxy.yaml', 'default.log'];
  const { code, stderr } = await run('replay', ...args);
  expect(code).toBe(1);
  expect(stderr).toBe(
    'weir replay: the lines have the member "x-tenant", but no file of --envoy contains the format of the log; pass ' +
      'the configuration with its access_log, such as the EnvoyProxy of Envoy Gateway\n',
  );
});

test('a BackendTrafficPolicy is not a policy', async () => {
  const args = ['--policy', 'gateway.yaml', '--envoy', 'gateway.yaml', 'access.log'];
  const { code, stderr } = await run('replay', ...args);
  expect(code).toBe(1);
  expect(stderr).toContain('a BackendTrafficPolicy is not a policy of weir');
});
