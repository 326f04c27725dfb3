/* Tests gates of `weir replay` that a log cannot decide. */
import { expect, test } from '@jest/globals';
import { commandFolder } from '../../support/weir/command-folder.js';

const { folder, host } = commandFolder();

folder.write(
  'new.yaml',
  'domain: d\ndescriptors: [{ key: tenant, rate_limit: { unit: hour, requests_per_unit: 9 } }]\n',
);
const replay = (...args: readonly string[]) =>
  host.run({ args: ['replay', '--policy', 'new.yaml', ...args], folder: folder.path });

test('a policy with another domain than the log decides no gate, even if the log has denials', async () => {
  folder.write(
    'mapping.yaml',
    'domain: shop\nlog: { time: time, status: status, x-tenant: tenant }\nrate_limits: [{ actions: ' +
      '[{ request_headers: { header_name: x-tenant, descriptor_key: tenant } }] }]\n',
  );
  folder.write('access.log', '{"time":"2026-11-20T09:00:00Z","status":429,"tenant":"ann"}\n');
  const { code, stderr } = await replay('--envoy', 'mapping.yaml', '--max-newly-denied', '0', 'access.log');
  expect(code).toBe(1);
  expect(stderr).toContain('The first call in the log has the domain "shop"');
  expect(stderr).toContain('undecided: ');
  expect(stderr).toContain('but the log has the domain "shop", and new.yaml has only "d"\n');
});

test('a decision log without the ends of its holds decides no gate', async () => {
  const entries = [{ key: 'tenant', value: 'ann' }];
  const line = { time: '2026-11-20T09:00:00Z', decision: 'ok', domain: 'd', descriptors: [{ entries }] };
  const end = { entries: [{ key: 'hold', value: '[hold token]' }] };
  folder.write(
    'decisions.log',
    `${[line, { ...line, descriptors: [{ entries }, end] }].map((each) => JSON.stringify(each)).join('\n')}\n`,
  );
  const { code, stderr } = await replay('--max-newly-denied', '0', 'decisions.log');
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining('but the decision log has no hold tokens, so holds last too long\n'),
  ]);
});
