/* Tests `weir replay --as-active`: the effect of a policy that does not deny yet. */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { commandFolder } from '../../support/weir/command-folder.js';

const { folder, host } = commandFolder();

folder.write(
  'new.yaml',
  `domain: d
phase: monitoring
descriptors:
  - { key: tenant, rate_limit: { unit: hour, requests_per_unit: 2 } }
  - key: path
    phase: { active: 2090-01-01T00:00:00Z }
    rate_limits: [{ unit: hour, requests_per_unit: 1, phase: monitoring }]
`,
);
const call = (at: number, descriptor: object): string =>
  JSON.stringify({ time: `2026-11-20T09:00:0${at}.000001Z`, domain: 'd', descriptors: [descriptor] });
const calls = [0, 1, 2].flatMap((at) => [call(at, { tenant: 'ann' }), call(at + 3, { path: '/a' })]);
folder.write('access.log', `${calls.join('\n')}\n`);

const replay = (...args: readonly string[]) =>
  host.run({ args: ['replay', '--policy', 'new.yaml', ...args, 'access.log'], folder: folder.path });

test('a policy in the phase monitoring denies nothing, and report and gate say how to see its effect', async () => {
  const { stdout, stderr, code } = await replay('--max-newly-denied', '0', '--html', 'report.html');
  expect(stdout).toMatch(/^new\.yaml would not deny any request/);
  const sentence =
    'because of its phase (see --as-active), shadow mode, percentage or on_over: path[1] 2 of 3, tenant 1 of 3.';
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain(sentence);
  expect(readFileSync(`${folder.path}/report.html`, 'utf8')).toContain(sentence);
  expect(code).toBe(0);
  expect(stderr).toMatch(
    /passed: .*; requests over limits that do not deny are not counted \(see --as-active\)/,
  );
});

test('with --as-active, the report shows what the policy will deny', async () => {
  const { stdout, stderr, code } = await replay('--as-active', '--max-newly-denied', '2');
  expect(code).toBe(3);
  expect(stderr).toContain('failed: 3 of 6 requests (50%) would be newly denied');
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
    'The new policy was decided as if all of its phases were active, because of --as-active.',
  );
  const against = await replay('--as-active', '--against', 'new.yaml', '--max-newly-denied', '2');
  expect(against.stderr).toBe(stderr);
});

test('weir diff --replay --as-active says what the change is, and what the policy will deny', async () => {
  folder.write('none.yaml', 'domain: d\ndescriptors: [{ key: tenant, unlimited: true }]\n');
  const args = ['diff', 'none.yaml', 'new.yaml', '--replay', 'access.log', '--as-active'];
  const { stdout } = await host.run({ args, folder: folder.path });
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain('because of --as-active.');
  expect(stdout).toMatch(/tenant +3 +0 +1 +1/);
  const plain = await host.run({ args: args.slice(0, -1), folder: folder.path });
  expect(plain.stdout.split('\n\n')[0]).toBe(stdout.split('\n\n')[0]);
});
