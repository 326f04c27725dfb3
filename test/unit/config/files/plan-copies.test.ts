import {
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  type LoadedPolicies,
  loadPolicies,
  type PreviousPolicies,
} from '../../../../src/config/files/load-policies.js';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { BLOCKED, findRow, isSet, valuesOfRow } from '../../../../src/policy/plans/plan-table.js';
import { TempDir } from '../../../support/process/temp-dir.js';

const POLICY = `domain: shop
plans:
  by: tenant
  from: customers.csv
  define: { gold: { burst: 3 }, suspended: { blocked: true } }
descriptors:
  - key: tenant
    rate_limit: { unit: minute, requests_per_unit: { plan: burst, default: 1 } }
`;
const ROWS = 'tenant,plan,burst\nacme,gold,\nmallory,suspended,\ninitech,gold,7\nzoë,gold,\n名,gold,5\n';

let dir: TempDir;
beforeEach(() => {
  dir = new TempDir();
  dir.write('policy.yaml', POLICY);
  dir.write('customers.csv', ROWS);
});
afterEach(() => dir.remove());

/** Loads the policy as after a start, if `previous` is undefined. */
function load(previous?: PreviousPolicies): LoadedPolicies {
  return loadPolicies([dir.join('policy.yaml')], { plansCache: dir.join('cache') }, previous);
}

/** Returns the burst of each customer, or `blocked`; undefined without a row. */
function limits({ policySet }: LoadedPolicies): readonly unknown[] {
  const table = policySet.domains.get('shop')?.plans;
  if (table === undefined) return [];
  return ['acme', 'mallory', 'initech', 'zoë', '名'].map((customer) => {
    const row = findRow(table, customer);
    if (row < 0) return undefined;
    const values = valuesOfRow(table, row);
    return isSet(values, BLOCKED) ? 'blocked' : values[4 + table.columns.indexOf('burst')];
  });
}

const ALL = [3, 'blocked', 7, 3, 5];
const statesOf = ({ domains }: LoadedPolicies): readonly string[] => domains.map(({ state }) => state);
const copy = (): string => dir.join(`cache/${readdirSync(dir.join('cache'))[0]}`);

test.each([
  ['missing', undefined, 'does not exist'],
  ['empty', '', 'the file is empty'],
  ['without rows', 'tenant,plan\n', 'the file has no rows'],
  ['of another kind', '<html>502 Bad Gateway</html>\n', 'no limit uses'],
  ['without most of its rows', 'tenant,plan\nacme,gold\n', '4 of 5 rows are gone'],
])('after a restart with a table that is %s, the last valid rows are in effect', (_, rows, message) => {
  const before = load();
  expect(limits(before)).toEqual(ALL);
  rmSync(dir.join('customers.csv'));
  if (rows !== undefined) dir.write('customers.csv', rows);
  for (const loaded of [load(), load(before)]) {
    expect(limits(loaded)).toEqual(ALL);
    expect(statesOf(loaded)).toEqual(['kept']);
    expect(loaded.errors.map(formatProblem).join()).toContain(message);
    expect(loaded.warnings.map(formatProblem).join()).toMatch(
      /the rows that were read at 20.* stay in effect/,
    );
    expect(loaded.policySet.version).toBe(before.policySet.version);
  }
  // The copy is still that of the valid table.
  expect(limits(load())).toEqual(ALL);
  dir.write('customers.csv', ROWS);
  expect(statesOf(load())).toEqual(['ok']);
});

test('removes temporary files of processes that ended while they wrote, and no others', () => {
  const old = [
    'plans-0123456789abcdef.7.new',
    'source-0123456789abcdef.x.new',
    'source-0123456789abcdef',
    'mine.new',
  ];
  for (const name of old) utimesSync(dir.write(`cache/${name}`, ''), 0, 0);
  dir.write('cache/source-0123456789abcdef.y.new', 'written now');
  load();
  expect(readdirSync(dir.join('cache')).sort()).toEqual([
    'mine.new',
    expect.stringMatching(/^plans-[0-9a-f]{16}$/),
    'source-0123456789abcdef',
    'source-0123456789abcdef.y.new',
  ]);
});

test('after a restart, a refused row of a blocked customer keeps the customer blocked', () => {
  load();
  dir.write('customers.csv', ROWS.replace('mallory,suspended', 'mallory,suspnded'));
  for (let restart = 0; restart < 3; restart++) {
    const loaded = load();
    expect(limits(loaded)).toEqual(ALL);
    expect(statesOf(loaded)).toEqual(['ok']);
    expect(loaded.warnings.map(formatProblem).join()).toContain('the row keeps its previous values');
  }
});

test('while the table is missing, a change of the policy takes effect', () => {
  const before = load();
  rmSync(dir.join('customers.csv'));
  dir.write('policy.yaml', POLICY.replace('unit: minute', 'unit: hour'));
  const loaded = load(before);
  expect(loaded.policySet.version).not.toBe(before.policySet.version);
  expect(limits(loaded)).toEqual(ALL);
});

test('without a copy, or with an invalid policy, the domain is absent', () => {
  rmSync(dir.join('customers.csv'));
  const [error] = load().errors.map(formatProblem);
  expect(error).toContain('policy.yaml:4:9: plans.from: ');
  expect(statesOf(load())).toEqual(['absent']);
  dir.write('customers.csv', ROWS);
  load();
  dir.write('policy.yaml', POLICY.replace('unit: minute', 'unit: fortnight'));
  expect(statesOf(load())).toEqual(['absent']);
});

test.each([
  ['cut', (bytes: Buffer) => bytes.subarray(0, bytes.length - 40)],
  [
    'changed',
    (bytes: Buffer) => Buffer.from(bytes.map((byte, i) => (i === bytes.length - 60 ? byte ^ 1 : byte))),
  ],
  ['empty', () => Buffer.alloc(0)],
  [
    'of another version',
    (bytes: Buffer) => Buffer.from(bytes.toString('latin1').replace('plans 2', 'plans 1'), 'latin1'),
  ],
])('a copy that is %s is ignored with a warning', (_, damage) => {
  load();
  writeFileSync(copy(), damage(readFileSync(copy())));
  const loaded = load();
  expect(limits(loaded)).toEqual(ALL);
  expect(loaded.warnings.map(formatProblem)).toEqual([expect.stringContaining('weir ignores the copy')]);
  // The load has replaced the copy.
  expect(load().warnings).toEqual([]);
});

test('only the owner can read a copy, and the rest of an interrupted write does not prevent the next one', () => {
  load();
  expect(statSync(copy()).mode & 0o777).toBe(0o600);
  const name = copy();
  renameSync(name, `${name}.${process.pid}.new`);
  truncateSync(`${name}.${process.pid}.new`, 10);
  expect(load().warnings).toEqual([]);
  expect(readdirSync(dir.join('cache'))).toHaveLength(1);
});

test('a directory that cannot be written to is a warning, and the rows take effect', () => {
  dir.write('cache', 'a file');
  const loaded = load();
  expect(limits(loaded)).toEqual(ALL);
  expect(statesOf(loaded)).toEqual(['ok']);
  expect(loaded.warnings.map(formatProblem).join()).toContain('Correct PLANS_CACHE_PATH');
  expect(loaded.policySet.domains.get('shop')?.plans?.rowCount).toBe(5);
});
