/* Tests `weir diff --replay`: both answers, their JSON, and which of them decides on the exit code. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { commandFolder } from '../support/weir/command-folder.js';

const { folder, host } = commandFolder();

const policy = (requests: number): string =>
  `domain: d\ndescriptors: [{ key: tenant, rate_limit: { unit: hour, requests_per_unit: ${requests} } }]\n`;
folder.write('five.yaml', policy(5));
folder.write('four.yaml', policy(4));
folder.write('two.yaml', policy(2));
const requests = ['ann', 'bob', 'ann', 'ann', 'ann'].map((tenant, at) =>
  JSON.stringify({ time: `2026-11-20T09:00:0${at}.000001Z`, domain: 'd', descriptors: [{ tenant }] }),
);
folder.write('access.log', `${requests.join('\n')}\n`);
folder.write('empty.log', '');

const diff = (...args: readonly string[]) => host.run({ args: ['diff', ...args], folder: folder.path });
const LOG = ['--replay', 'access.log', '--by', 'tenant'];

describe('weir diff --replay', () => {
  test('prints what the change is, and then whom it would have denied', async () => {
    const { code, stdout, stderr } = await diff('five.yaml', 'two.yaml', ...LOG);
    expect([code, stderr]).toEqual([3, '']);
    expect(stdout).toMatch(/^domain d\n {2}tenant: tightens: .*\n\n1 tightens\n\n1 of 2 tenants would lose/);
    expect(stdout).toContain('requests: ann 2 of 4 (50%).\n');
  });

  test('prints one JSON document', async () => {
    const { code, stdout } = await diff('five.yaml', 'two.yaml', ...LOG, '--json');
    expect(code).toBe(3);
    expect(JSON.parse(stdout)).toMatchObject({
      tightens: true,
      summary: { tighten: 1 },
      replay: {
        report: 1,
        before: { kind: 'policy', name: 'five.yaml' },
        total: { requests: 5, newlyDenied: { least: 2, most: 2 } },
      },
    });
  });

  test('writes the report as a page', async () => {
    const { code } = await diff('two.yaml', 'five.yaml', ...LOG, '--html', 'report.html');
    expect([code, readFileSync(folder.join('report.html'), 'utf8')]).toEqual([
      0,
      expect.stringContaining('<!doctype html>'),
    ]);
  });

  test.each([
    ['tightens, and denies nothing', ['five.yaml', 'four.yaml'], 3],
    ['tightens, and denies nothing, with a bound', ['five.yaml', 'four.yaml', '--max-newly-denied', '0'], 0],
    ['tightens within the bound', ['five.yaml', 'two.yaml', '--max-newly-denied', '2'], 0],
    ['exceeds the bound', ['five.yaml', 'two.yaml', '--max-newly-denied', 'tenant=ann:1'], 3],
    ['does not decide', ['five.yaml', 'two.yaml', '--max-newly-denied', 'tenant=eve:1'], 1],
    ['loosens', ['two.yaml', 'five.yaml'], 0],
  ])('a change that %s', async (_what, args, code) => {
    expect(await diff(...args, ...LOG)).toMatchObject({ code });
  });

  test('a bound may have another key than --by, and is in the JSON', async () => {
    const bounds = ['tenant=*:1', 'tenant=bob:0'].flatMap((bound) => ['--max-newly-denied', bound]);
    const args = ['five.yaml', 'two.yaml', '--replay', 'access.log', '--json', ...bounds];
    const { code, stdout, stderr } = await diff(...args);
    expect(code).toBe(3);
    expect(stderr).toBe(`\
weir diff: --max-newly-denied tenant=*:1: failed: more requests of 1 of 2 tenants would be newly denied: \
tenant=ann 2 of 4 (50%)
weir diff: --max-newly-denied tenant=bob:0: passed: 0 of 1 requests (0%) would be newly denied
`);
    const { replay } = JSON.parse(stdout);
    expect(replay.groups).toBeUndefined();
    expect(replay.gates).toMatchObject([
      { verdict: 'failed', values: { count: 2 }, offenders: [{ group: { key: 'tenant', value: 'ann' } }] },
      { verdict: 'passed', group: { key: 'tenant', value: 'bob' }, requests: 1, offenders: [] },
    ]);
  });

  test('a log that cannot be read: prints no JSON, and exits with 1', async () => {
    const { code, stdout, stderr } = await diff('five.yaml', 'two.yaml', '--replay', 'gone.log', '--json');
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringMatching(/^weir diff: .*gone\.log/)]);
  });

  test.each([
    [['--by', 'tenant'], '--by needs an access log; name it with --replay'],
    [[...LOG, 'access.log'], 'and each access log with its own --replay'],
    [[...LOG, '--html', '-'], '--html needs the name of a file'],
    [[...LOG, '--max-newly-denied', 'tenant=a'], "'tenant=a' is not a number of requests or a percentage"],
  ])('rejects %j', async (args, message) => {
    const { code, stderr } = await diff('five.yaml', 'two.yaml', ...args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });
});
