/* Tests `weir migrate` from a shell with limits of another service: report, files, and the policies that weir loads. */
import { afterAll, expect, test } from '@jest/globals';
import { TempDir } from '../support/process/temp-dir.js';
import { CommandHost } from '../support/weir/commands.js';

const folder = new TempDir();
const host = new CommandHost();
afterAll(async () => {
  await host.stop();
  folder.remove();
});
const weir = (...args: string[]) => host.run({ args, folder: folder.path });

const LIMITS = `
- namespace: shop
  max_value: 10
  seconds: 60
  conditions: ["descriptors[0]['method'] == 'GET'"]
  variables: ["descriptors[0]['user']"]
`;

test('converts limits of Limitador to policies that weir loads and matches', async () => {
  folder.write('limits.yaml', LIMITS);
  const shown = await weir('migrate', 'limits.yaml', '--write', 'moved');
  expect([shown.code, shown.stderr]).toEqual([0, '']);
  expect(shown.stdout).toMatch(
    /^1 rule in 1 domain, converted from the Limitador limits in limits\.yaml\.\n\nNo decisions are needed\.\n/,
  );
  expect(shown.stdout).toContain('Written to moved\n  policies/shop.yaml  1 rule\n');
  expect(await weir('check-config', 'moved/policies')).toMatchObject({ code: 0, stderr: '' });
  const matched = await weir(
    'explain',
    'moved/policies/shop.yaml',
    '--domain',
    'shop',
    'method=GET',
    'user=ann',
  );
  expect(matched.stdout).toContain('window: 10 per minute');
  const again = await weir('migrate', 'limits.yaml', '--write', 'moved');
  expect(again).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('already contains policies/shop.yaml'),
  });
  const json = await weir('migrate', 'limits.yaml', '--json');
  expect(JSON.parse(json.stdout)).toMatchObject({ service: null, decide: [], written: null });
});

test('exits with 1 for limits without an equivalent, and names other files', async () => {
  folder.write('refused.yaml', LIMITS.replace('==', '!='));
  folder.write('limitador.env', 'RUST_LOG=debug\n');
  const { code, stdout } = await weir('migrate', 'refused.yaml', 'limitador.env');
  expect([code, stdout]).toEqual([1, expect.stringContaining('is not of the form key == ')]);
  expect(stdout).toContain(
    'limitador.env: weir migrate ignored this file, because other files contain limits to convert.',
  );
});

test('does not read a directory with charts as policies', async () => {
  folder.write('charts/limits/Chart.yaml', 'apiVersion: v2\nname: limits\nversion: 0.1.0\n');
  folder.write('charts/limits/templates/policy.yaml', 'domain: {{ .Values.domain }}\n');
  const { code, stdout, stderr } = await weir('migrate', 'charts');
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toContain('weir migrate: "charts/limits" contains the source of a Helm chart');
});
