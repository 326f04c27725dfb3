/* Tests `weir replay --as-active`: the effect of a policy that does not deny yet. */
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

test('a policy in the phase monitoring denies nothing, and the report says how to see its effect', async () => {
  const { stdout } = await replay();
  expect(stdout).toMatch(/^new\.yaml would not deny any request/);
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
    'tenant: 1 request was over the limit, but allowed because of a phase (see --as-active)',
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
