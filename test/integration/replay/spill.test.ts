/* Tests `weir replay` with a chain of limits (`then`). */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import type { ReplayReport } from '../../../src/replay/report/report.js';
import { commandFolder } from '../../support/weir/command-folder.js';

const { folder, host } = commandFolder();

const chain = (plan: string, credits: string) => `
    rate_limits:
      - { name: plan, then: credits, token_bucket: { max_tokens: ${plan}, fill_interval: 30m } }
      - { name: credits, token_bucket: { max_tokens: ${credits}, fill_interval: 2920h } }
`;
const writePolicy = (name: string, limits: string, plans = ''): void => {
  folder.write(name, `domain: paid\n${plans}descriptors:\n  - key: tenant${limits}`);
};
writePolicy('new.yaml', chain('2', '3'));

/** Requests of tenants, a second apart. */
function writeLog(tenants: readonly string[]): void {
  const lines = tenants.map((tenant, at) => {
    const time = new Date(Date.parse('2026-11-20T09:00:00Z') + at * 1000).toISOString();
    return JSON.stringify({ time: time.replace('Z', '000Z'), domain: 'paid', descriptors: [{ tenant }] });
  });
  folder.write('access.log', `${lines.join('\n')}\n`);
}
const SIX = Array.from({ length: 6 }, () => 'acme');

async function replay(policy: string, ...args: readonly string[]) {
  const options = ['--by', 'tenant', '--json', 'report.json', ...args];
  const all = ['replay', '--policy', policy, ...options, 'access.log'];
  const result = await host.run({ args: all, folder: folder.path });
  const report: ReplayReport = JSON.parse(readFileSync(`${folder.path}/report.json`, 'utf8'));
  const rules = Object.fromEntries(report.rules.map((rule) => [rule.rule, rule]));
  return { ...result, report, rules };
}

const exactly = (count: number) => ({ least: count, most: count });

test('a request belongs to the limit that pays, and a denied one to the last limit', async () => {
  writeLog(SIX);
  const { report, rules } = await replay('new.yaml');
  expect(report.total).toMatchObject({ requests: 6, deniedAfter: exactly(1), uncertain: 0 });
  expect(rules['tenant[plan]']).toMatchObject({ requests: 2, deniedAfter: exactly(0), deniedCallers: 0 });
  expect(rules['tenant[credits]']).toMatchObject({ requests: 4, deniedAfter: exactly(1), deniedCallers: 1 });
});

test('only the last limit can lack capacity', async () => {
  writeLog(SIX);
  const { rules, report, stdout } = await replay('new.yaml');
  expect(rules['tenant[plan]']).not.toHaveProperty('capacity');
  expect(rules['tenant[plan]']?.peakUse).toBe(0);
  expect(rules['tenant[credits]']).toMatchObject({ capacity: { none: 4, thousandth: 4, hundredth: 4 } });
  expect(report.groups?.shown[0]?.peakUse).toBeCloseTo(4 / 3, 3);
  expect(stdout).toMatch(/tenant\[credits\] +4 +4 +4 +token bucket: 3 tokens, 1 every 2920h/);
  writePolicy('enough.yaml', chain('2', '4'));
  expect((await replay('enough.yaml')).report.total.deniedAfter).toEqual(exactly(0));
});

test('fewer credits newly deny the requests that the old credits paid for', async () => {
  writeLog([...SIX, 'zoo']);
  writePolicy('fewer.yaml', chain('2', '1'));
  const { stdout, report } = await replay('fewer.yaml', '--against', 'new.yaml');
  expect(report.total).toMatchObject({ deniedBefore: 1, newlyDenied: exactly(2), newlyAllowed: exactly(0) });
  expect(stdout).toMatch(/^1 of 2 tenants would lose requests: acme 2 of 6 \(33%\)\./);
  // A smaller plan is not a loss while the credits last.
  writePolicy('smaller.yaml', chain('1', '4'));
  const { report: smaller } = await replay('smaller.yaml', '--against', 'new.yaml');
  expect(smaller.total).toMatchObject({ newlyDenied: exactly(0), newlyAllowed: exactly(0) });
});

test('the longest denial of a chain ends with a request that any of its limits allows', async () => {
  writePolicy('quick.yaml', chain('1', '1').replace('30m', '2500ms'));
  writeLog(SIX);
  // Allowed by plan and credits, denied, allowed by the plan at 3 s, and denied twice.
  const { rules } = await replay('quick.yaml');
  expect(rules['tenant[credits]']).toMatchObject({ deniedAfter: exactly(3), longestDeniedSeconds: 1 });
});

test('rows of plans give each customer its own chain, and block or exempt the whole chain', async () => {
  const plans = `plans:
  by: tenant
  define:
    acme: { calls: 1, credits: 2 }
    mallory: { blocked: true }
    staff: { unlimited: true }
`;
  writePolicy('plans.yaml', chain('{ plan: calls, default: 1 }', '{ plan: credits, default: 1 }'), plans);
  writeLog(['acme', 'nobody', 'mallory', 'staff'].flatMap((tenant) => [1, 2, 3, 4].map(() => tenant)));
  const { report } = await replay('plans.yaml');
  const denied = report.groups?.shown.map(({ value, deniedAfter }) => [value, deniedAfter]);
  expect(Object.fromEntries(denied ?? [])).toEqual({
    acme: exactly(1),
    nobody: exactly(2),
    mallory: exactly(4),
  });
  expect(report.log.unlimited).toBe(4);
});

test('a blocked customer does not count for the capacity of a limit without values from plans', async () => {
  const plans = 'plans: { by: tenant, define: { mallory: { blocked: true } } }\n';
  writePolicy('blocked.yaml', chain('{ plan: calls, default: 1 }', '2'), plans);
  writeLog(['mallory', 'mallory', 'mallory', 'mallory', 'mallory', 'acme', 'acme', 'acme', 'acme']);
  const { rules } = await replay('blocked.yaml');
  expect(rules['tenant[credits]']).toMatchObject({
    limit: 'token bucket: 2 tokens, 1 every 2920h',
    deniedAfter: exactly(6),
    callers: 2,
    peakUse: expect.closeTo(1.5, 3),
    capacity: { none: 3, thousandth: 3, hundredth: 3 },
  });
});
