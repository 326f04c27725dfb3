import { describe, expect, test } from '@jest/globals';
import type { LoadedPolicies } from '../../../../src/config/files/load-policies.js';
import { createDiscoveryCodec, RATE_LIMIT_CONFIG_TYPE } from '../../../../src/config/xds/discovery.js';
import {
  ConfigWarnings,
  logProblems,
  logReload,
  xdsLog,
} from '../../../../src/server/policies/policy-log.js';
import type { Logger } from '../../../../src/telemetry/logger.js';
import { loadUpdate } from '../../../support/policy/loads.js';
import { PolicyDir } from '../../../support/policy/policy-dir.js';
import { encodeConfig } from '../../../support/xds/xds-server.js';

const codec = createDiscoveryCodec();

/** Returns policies as Envoy Gateway sends them for limits in shadow mode, with `shadow_mode` at each level. */
function shadowed(routes: number, requests: number): LoadedPolicies {
  const descriptors = Array.from({ length: routes }, (_, route) => ({
    key: `route-${route}`,
    shadow_mode: true,
    descriptors: [
      { key: 'user', shadow_mode: true, rate_limit: { unit: 'HOUR', requests_per_unit: requests } },
    ],
  }));
  const value = encodeConfig({ name: 'listener', domain: 'd', descriptors }).bytes;
  return loadUpdate([{ typeUrl: RATE_LIMIT_CONFIG_TYPE, value }], codec, { mergeDomains: false });
}

/** Creates a log that keeps its warnings. */
function open() {
  const warned: string[] = [];
  const warn = (...told: unknown[]) => warned.push(String(told.at(-1)));
  const log = { info: () => {}, error: () => {}, warn } as unknown as Logger;
  return { log, warned };
}

/** Creates a log that keeps the fields of its events. */
function openInfo() {
  const told: unknown[] = [];
  const log = { info: (fields: unknown) => told.push(fields), error: () => {}, warn: () => {} };
  return { log: log as unknown as Logger, told };
}

const SHADOWED =
  'listener: descriptors[0].shadow_mode: "shadow_mode" has no effect without a limit in the same ' +
  'descriptor; add "rate_limit" or "rate_limits", or remove "shadow_mode" (the first of 20 such ' +
  'warnings)';

describe('policy warnings', () => {
  test('a kind of warning is logged once for each policy version, with a count, however many pushes there are', () => {
    const { log, warned } = open();
    const { accepted, rejected } = xdsLog(log, 'xds:1');
    const first = shadowed(20, 5);
    for (const version of ['1', '2', '3']) accepted(version, first, first.policySet, []);
    rejected('4', first, first.policySet.version);
    expect(warned).toEqual([SHADOWED]);
    accepted('5', shadowed(20, 6), shadowed(20, 6).policySet, []);
    expect(warned).toEqual([SHADOWED, SHADOWED]);
  });

  test('kinds differ by field and message', () => {
    const { log, warned } = open();
    const at = (path: string, message: string) => ({ file: 'a.yaml', line: 1, column: 1, path, message });
    const problems = [
      at('descriptors[0].value', '"010" is read as octal, 8'),
      at('descriptors[1].value', '"011" is read as octal, 9'),
      at('descriptors[2].key', '"012" is read as octal, 10'),
      { ...at('', 'and 7 more warnings, which are not listed'), count: 7 },
    ];
    const warnings = new ConfigWarnings(log);
    const loaded = { errors: [], warnings: problems, domains: [] };
    const { policySet } = shadowed(1, 5);
    logProblems(log, warnings, { ...loaded, policySet });
    logProblems(log, warnings, { ...loaded, policySet });
    expect(warned).toEqual([
      'a.yaml:1:1: descriptors[0].value: "010" is read as octal, 8 (the first of 2 such warnings)',
      'a.yaml:1:1: descriptors[2].key: "012" is read as octal, 10',
      'a.yaml:1:1: and 7 more warnings, which are not listed',
    ]);
  });

  test('at most 20 kinds are stored', () => {
    const { log, warned } = open();
    const warnings = new ConfigWarnings(log);
    for (let kind = 0; kind < 1000; kind++) warnings.logOnce('v', `kind ${kind}`, 'text');
    expect(warned).toHaveLength(20);
  });

  test('a message that each push of the management server causes is logged once', () => {
    const { log, warned } = open();
    const { accepted, ignored } = xdsLog(log, 'xds:1');
    const none = loadUpdate([], codec, { mergeDomains: false });
    for (const version of ['1', '2', '3']) {
      accepted(version, none, none.policySet, []);
      ignored('type.googleapis.com/envoy.config.cluster.v3.Cluster');
    }
    expect(warned).toEqual([
      'the configuration contains no domain, so weir does not limit any requests',
      'the management server sent resources that weir did not request',
    ]);
    for (let type = 0; type < 1000; type++) ignored(`type.${type}`);
    expect(warned).toHaveLength(21);
  });
});

test('a reload names the rows of plans that are refused or gone', () => {
  const dir = new PolicyDir();
  const policy =
    'domain: d\nplans: { by: tenant, from: rows.csv, max_drop: 50 }\ndescriptors:\n' +
    '  - { key: tenant, rate_limit: { unit: day, requests_per_unit: { plan: n, default: 1 } } }\n';
  dir.load({ 'd.yaml': policy, 'rows.csv': 'tenant,n\na,1\nb,2\nc,3\n' });
  const { policySet, domains, errors, warnings } = dir.load({ 'rows.csv': 'tenant,n\na,2\nb,x\n' });
  const { log, told } = openInfo();
  const outcome = { kind: 'loaded', reason: 'change', newSecrets: [] } as const;
  logReload(log, new ConfigWarnings(log), { ...outcome, policySet, domains, errors, warnings });
  expect(told).toEqual([
    {
      reason: 'change',
      policy: policySet.version,
      domains: ['d'],
      plans: [{ domain: 'd', rows: 2, refused: 1, lost: 1 }],
    },
  ]);
  dir.dir.remove();
});
