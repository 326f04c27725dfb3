/* Loads of a server after a start, while the table of plans is missing or invalid. */
import { beforeEach, expect, test } from '@jest/globals';
import { loadPolicies, type PreviousPolicies } from '../../../../src/config/files/load-policies.js';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { exposePlans } from '../../../../src/server/metrics/server-metrics.js';
import { FamilyRegistry } from '../../../../src/telemetry/family-registry.js';
import { entries } from '../../../support/policy/policies.js';
import { TempDir } from '../../../support/process/temp-dir.js';

const POLICY = `domain: shop
plans: { by: tenant, from: customers.csv, default: free, define: { free: { calls: 1 }, gold: { calls: 9 }, bad: { blocked: true } } }
descriptors: [{ key: tenant, rate_limit: { unit: day, requests_per_unit: { plan: calls } } }]
`;
const ROWS = 'tenant,plan\nacme,gold\nmallory,bad\n';

let dir: TempDir;
beforeEach(() => {
  dir = new TempDir();
  dir.write('policy.yaml', POLICY);
});

const load = (previous?: PreviousPolicies) =>
  loadPolicies([dir.join('policy.yaml')], { rows: new Map() }, previous);
const limitOf = ({ policySet }: PreviousPolicies, tenant: string) =>
  policySet.domains.get('shop')?.match(entries(`tenant=${tenant}`)).rules[0]?.rate?.reportedLimit;

test.each([
  ['missing', undefined, 'does not exist'],
  ['empty', '', 'the file is empty'],
  ['without rows', 'tenant,plan\n', 'the file has no rows'],
  ['of another kind', '<html>502 Bad Gateway</html>\n', 'no limit uses'],
  ['full of invalid rows', 'tenant,plan\nacme,glod\n', 'all rows of the file are invalid'],
])('a table that is %s does not keep its domain from loading', (_, rows, message) => {
  if (rows !== undefined) dir.write('customers.csv', rows);
  const started = load();
  expect(started.domains).toMatchObject([{ domain: 'shop', state: 'ok' }]);
  expect(['acme', 'mallory', 'x'].map((tenant) => limitOf(started, tenant))).toEqual([1, 1, 1]);
  expect(started.errors.map(formatProblem).join()).toContain(message);
  expect(started.warnings.map(formatProblem).join()).toContain(
    'all customers have the limits of customers without a row until the file is valid',
  );
  const again = load(started);
  expect(again.policySet.version).toBe(started.policySet.version);
  dir.write('customers.csv', ROWS);
  const arrived = load(again);
  expect(arrived.errors).toEqual([]);
  expect(['acme', 'mallory', 'x'].map((tenant) => limitOf(arrived, tenant))).toEqual([9, 0, 1]);
});

test('a policy that is invalid itself stays absent, and so does one with a missing table in a command', () => {
  expect(loadPolicies([dir.join('policy.yaml')]).domains).toMatchObject([{ state: 'absent' }]);
  dir.write('policy.yaml', POLICY.replace('unit: day', 'unit: fortnight'));
  expect(load().domains).toMatchObject([{ state: 'absent' }]);
});

test('a metric has the age of a missing table, until its rows arrive', async () => {
  let loaded = load();
  const registry = new FamilyRegistry();
  exposePlans(registry, { current: () => loaded.policySet, sources: undefined });
  const series = async (): Promise<string[]> =>
    String(await registry.text())
      .split('\n')
      .filter((line) => /^weir_plan_.*age/.test(line));
  expect(await series()).toEqual([
    expect.stringMatching(/^weir_plan_source_age_seconds\{source="customers.csv"\} \d/),
  ]);
  dir.write('customers.csv', ROWS);
  loaded = load(loaded);
  expect(await series()).toEqual([]);
});
