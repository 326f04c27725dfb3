/* Tests `weir replay` with limits whose values come from rows of plans. */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import type { ReplayReport } from '../../../src/replay/report/report.js';
import { commandFolder } from '../../support/weir/command-folder.js';

const { folder, host } = commandFolder();

const POLICY = `domain: shop
plans:
  by: tenant
  from: customers.csv
  default: free
  max_drop: 100
  define:
    free: { burst: 1, interval: 60m }
    silver: { burst: 2, interval: 30m }
    gold: { burst: 3, interval: 20m }
    internal: { unlimited: true }
    suspended: { blocked: true }
descriptors:
  - key: tenant
    rate_limit: { token_bucket: { max_tokens: { plan: burst }, fill_interval: { plan: interval } } }
`;
const ROWS = ['acme,gold,', 'globex,silver,', 'initech,gold,4', 'mallory,suspended,', 'staff,internal,'];
const TENANTS = ['nobody', 'acme', 'globex', 'initech', 'mallory', 'staff'];

function writePolicy(name: string, rows: readonly string[]): void {
  folder.write(`${name}/policy.yaml`, POLICY);
  folder.write(`${name}/customers.csv`, ['tenant,plan,burst', ...rows, ''].join('\n'));
}

writePolicy('new', ROWS);
writePolicy(
  'old',
  ROWS.map((row) => row.replace('suspended', 'silver').replace('globex,silver', 'globex,gold')),
);

/** Four requests of each tenant, whose times have so many digits of a second. */
function writeLog(name: string, digits: number): void {
  const lines = [0, 1, 2, 3].flatMap((at) =>
    TENANTS.map((tenant, of) => {
      const fraction = String(of * 4 + at).padStart(digits, '0');
      const time = `2026-11-20T09:00:0${digits === 3 ? 0 : at}.${fraction}Z`;
      return JSON.stringify({ time, domain: 'shop', descriptors: [{ tenant }] });
    }),
  );
  folder.write(name, `${lines.join('\n')}\n`);
}
writeLog('access.log', 6);

async function replay(...args: readonly string[]) {
  const all = ['replay', '--policy', 'new/policy.yaml', '--by', 'tenant', '--json', 'report.json', ...args];
  const result = await host.run({ args: all, folder: folder.path });
  const report: ReplayReport = JSON.parse(readFileSync(`${folder.path}/report.json`, 'utf8'));
  const shown = report.groups?.shown ?? [];
  const newlyDenied = Object.fromEntries(shown.map((group) => [group.value, group.newlyDenied]));
  return { ...result, report, shown, newlyDenied };
}

const exactly = (count: number) => ({ least: count, most: count });

test('each customer is denied by its own row', async () => {
  const { report, shown, newlyDenied } = await replay('access.log');
  expect(newlyDenied).toEqual({
    nobody: exactly(3),
    acme: exactly(1),
    globex: exactly(2),
    initech: exactly(0),
    mallory: exactly(4),
  });
  expect(report.log.unlimited).toBe(4);
  // A blocked customer has no share of a limit.
  const used = shown.map(({ value, peakUse }) => [value, Math.round(peakUse * 100) / 100]);
  expect(Object.fromEntries(used)).toEqual({ nobody: 4, acme: 1.33, globex: 2, initech: 1, mallory: 0 });
});

test('the report names the values of the plan, and no capacity for all customers', async () => {
  const { report, stdout } = await replay('access.log');
  expect(report.rules).toMatchObject([
    {
      rule: 'tenant',
      limit: 'max_tokens from the plan value burst, fill_interval from the plan value interval',
    },
  ]);
  expect(report.rules[0]).not.toHaveProperty('capacity');
  expect(stdout).not.toContain('DENIES NONE');
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
    'Limits with values from plans differ between customers, so the report does not tell which capacity would ' +
      "suffice. The peak use is a share of the customer's own limit.",
  );
});

test('a changed table newly denies only the customers whose rows changed', async () => {
  const gates = ['--max-newly-denied', 'tenant=globex:1', '--max-newly-denied', 'tenant=mallory:1'];
  const args = ['--against', 'old/policy.yaml', ...gates, 'access.log'];
  const { stdout, stderr, code, newlyDenied } = await replay(...args);
  expect(newlyDenied).toEqual({
    nobody: exactly(0),
    acme: exactly(0),
    globex: exactly(1),
    initech: exactly(0),
    mallory: exactly(2),
  });
  expect(stdout).toMatch(
    /^2 of 5 tenants would lose requests: mallory 2 of 4 \(50%\), globex 1 of 4 \(25%\)\./,
  );
  expect(stderr).toMatch(/tenant=globex:1: passed/);
  expect(stderr).toMatch(/tenant=mallory:1: failed/);
  expect(code).toBe(3);
});

test('customers with the same row lose nothing, although the log leaves their decisions open', async () => {
  writeLog('milliseconds.log', 3);
  const args = ['--against', 'old/policy.yaml', '--slack', '10ms', 'milliseconds.log'];
  const { report, shown, newlyDenied } = await replay(...args);
  expect(report.total.uncertain).toBeGreaterThan(0);
  expect(newlyDenied).toMatchObject({ nobody: exactly(0), acme: exactly(0), initech: exactly(0) });
  // A blocked customer is denied in every order.
  expect(shown.find(({ value }) => value === 'mallory')?.deniedAfter).toEqual(exactly(4));
});

test('weir diff --replay reports the changed rows, and the customers that lose requests', async () => {
  const args = ['diff', 'old/policy.yaml', 'new/policy.yaml', '--replay', 'access.log', '--by', 'tenant'];
  const { stdout } = await host.run({ args, folder: folder.path });
  expect(stdout).toContain('rows of plans: 2 customers can now be denied more');
  expect(stdout).toContain('2 of 5 tenants would lose requests: mallory 2 of 4 (50%), globex 1 of 4 (25%).');
});
