/* Tests that a file with several logs in succession, such as the output of `kubectl logs -l`, decides nothing. */
import { expect, test } from '@jest/globals';
import type { ReplayReport } from '../../../src/replay/report/report.js';
import { commandFolder } from '../../support/weir/command-folder.js';

const { folder, host } = commandFolder();

folder.write(
  'new.yaml',
  'domain: shop\ndescriptors: [{ key: tenant, rate_limit: { unit: minute, requests_per_unit: 90 } }]\n',
);
const START = Date.parse('2026-11-26T08:00:00Z');
/** A pod writes each second request of a caller that sends 2 requests in a second, for an hour. */
const pod = (offset: number): string =>
  Array.from({ length: 3600 }, (_, i) => {
    const time = new Date(START + i * 1000 + offset).toISOString();
    return `${JSON.stringify({ time, domain: 'shop', descriptors: [{ tenant: 'acme' }] })}\n`;
  }).join('');
const [one, other] = [pod(0), pod(500)];
folder.write('one.log', one);
folder.write('other.log', other);
folder.write('both.log', one + other);

const WARNING = '2,860 of 7,200 requests (40%) came too late to be sorted by time';

const run = (...args: readonly string[]) => host.run({ args, folder: folder.path });
const replay = (...args: readonly string[]) =>
  run('replay', '--policy', 'new.yaml', '--max-newly-denied', '10%', '--json', '-', ...args);

test('a gate is undecided, and the report begins with a warning', async () => {
  const { code, stdout, stderr } = await replay('both.log');
  expect(code).toBe(1);
  expect(stderr).toMatch(new RegExp(`^weir replay: warning: ${WARNING.replaceAll(/[()]/g, '\\$&')}`));
  expect(stderr).toMatch(/: undecided: .*, but too many requests came too late to be sorted by time/);
  const { warnings, log } = JSON.parse(stdout) as ReplayReport;
  expect(warnings[0]).toContain(WARNING);
  expect(log.late).toBe(2860);
});

test.each([
  ['one.log', 'other.log'],
  ['--window=2h', 'both.log'],
])('the right result comes from %s %s', async (...args) => {
  const { code, stdout, stderr } = await replay(...args);
  expect(stderr).toMatch(/^weir replay: --max-newly-denied 10%: failed: 1,800 of 7,200/);
  expect(code).toBe(3);
  expect((JSON.parse(stdout) as ReplayReport).warnings).toEqual([]);
});
