/* Tests the command `weir replay`: logs, maps, reports and exit codes. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import type { Report } from '../../src/replay/report.js';
import { TempDir } from '../support/process/temp-dir.js';
import { CommandHost } from '../support/weir/commands.js';

const folder = new TempDir();
const host = new CommandHost();

const policy = (tokens: number, more = ''): string =>
  `domain: shop\n${more}descriptors: [{ key: tenant, rate_limit: { token_bucket: { max_tokens: ${tokens}, ` +
  'fill_interval: 10s } } }]\n';
folder.write('two.yaml', policy(2));
folder.write('four.yaml', policy(4));
folder.write('monitoring.yaml', policy(2, 'phase: monitoring\n'));
folder.write('other.yaml', policy(2).replace('shop', 'store'));
folder.write(
  'map.yaml',
  'domain: shop\ntime: start\nmethod: method\nflags: flags\ndetails: details\n' +
    'descriptors: [[{ key: tenant, from: headers.x-tenant }]]\n',
);

/** A line of an access log. */
function line(start: string, tenant: string | undefined, more: object = {}): string {
  const headers = tenant === undefined ? {} : { 'x-tenant': tenant };
  return JSON.stringify({ start, method: 'GET', flags: '-', details: 'via_upstream', headers, ...more });
}

const LINES = [
  line('2026-11-20T09:00:00.100Z', 'acme'),
  line('2026-11-20T09:00:00.700Z', 'acme'),
  line('2026-11-20T09:00:01.200Z', 'zoo'),
  line('2026-11-20T09:00:01.900Z', 'acme'),
  line('2026-11-20T09:00:02.300Z', 'acme'),
  line('2026-11-20T09:00:40.000Z', 'zoo'),
  line('2026-11-20T09:01:10.500Z', 'acme'),
];
folder.write('access.log', `${LINES.join('\n')}\n`);

const replay = (...args: readonly string[]) => host.run({ args: ['replay', ...args], folder: folder.path });

/** Replays with a policy and the map, and returns the report as JSON. */
async function reportOf(...args: readonly string[]): Promise<Report> {
  const { stderr } = await replay('--map', 'map.yaml', '--json', 'report.json', ...args);
  expect(stderr).toBe('');
  return JSON.parse(readFileSync(join(folder.path, 'report.json'), 'utf8')) as Report;
}

describe('weir replay', () => {
  test('reports rules, callers and limits', async () => {
    const args = ['--policy', 'two.yaml', '--map', 'map.yaml', '--by', 'tenant', 'access.log'];
    const { code, stdout, stderr } = await replay(...args);
    expect([code, stderr]).toEqual([0, '']);
    expect(
      stdout,
    ).toBe(`2 of 7 requests would be newly denied (29%), from 1 of 2 values of tenant: acme 2 of 5 (40%).

Denied requests by rule, before (in the log) and after (with two.yaml):
RULE            REQUESTS  BEFORE  AFTER  NEWLY DENIED  SHARE  NEWLY ALLOWED
tenant                 7       0      2             2    29%              0
(all requests)         7       0      2             2    29%              0

Smallest max_tokens (with the same refill), requests_per_unit or max that would have denied so many requests:
RULE    NOBODY  AT MOST 0.1%  AT MOST 1%  NOW
tenant       4             4           4  token bucket: 2 tokens, 1 every 10s

Denied requests by tenant:
TENANT  REQUESTS  BEFORE  AFTER  NEWLY DENIED  SHARE  NEWLY ALLOWED
acme           5       0      2             2    40%              0
zoo            2       0      0             0     0%              0

Read 7 lines of access.log: 7 requests from 2026-11-20T09:00:00.100Z to 2026-11-20T09:01:10.500Z.
- Callers do not react in a replay: denied requests are not repeated, and retries in the log are still sent.
`);
  });

  test('compares two policies, and changes nothing with the same policy on both sides', async () => {
    const { total } = await reportOf('--policy', 'two.yaml', '--against', 'four.yaml', 'access.log');
    expect(total).toEqual({ requests: 7, before: 0, after: 2, newlyDenied: 2, newlyAllowed: 0 });
    const same = await reportOf('--policy', 'two.yaml', '--against', 'two.yaml', 'access.log');
    expect(same.total).toEqual({ requests: 7, before: 2, after: 2, newlyDenied: 0, newlyAllowed: 0 });
    expect(same.rules).toMatchObject([same.total]);
  });

  test('reads compressed files, and merges logs by time', async () => {
    const odd = LINES.filter((_, at) => at % 2 === 1).join('\r\n');
    writeFileSync(join(folder.path, 'odd.log.gz'), gzipSync(odd));
    folder.write('even.log', `\ufeff${LINES.filter((_, at) => at % 2 === 0).join('\n\n')}`);
    const report = await reportOf('--policy', 'two.yaml', 'odd.log.gz', 'even.log');
    expect(report).toMatchObject({ lines: 7, total: { requests: 7, after: 2 }, unreadable: [] });
  });

  test.each([
    ['0', 3],
    ['1', 3],
    ['2', 0],
    ['28%', 3],
    ['29%', 0],
  ])('--max-newly-denied %s exits with %i', async (bound, code) => {
    const args = ['--policy', 'two.yaml', '--map', 'map.yaml', '--max-newly-denied', bound, 'access.log'];
    expect((await replay(...args)).code).toBe(code);
  });

  test('gives no verdict if lines cannot be read', async () => {
    folder.write('bad.log', `${LINES.join('\n')}\nnot JSON\n`);
    const args = ['--policy', 'two.yaml', '--map', 'map.yaml', '--max-newly-denied', '2', 'bad.log'];
    const { code, stdout } = await replay(...args);
    expect(code).toBe(4);
    expect(stdout).toContain('--max-newly-denied 2: undecided: 1 of 8 lines cannot be read.\n');
    expect(stdout).toContain(
      '- Unreadable: 1 line not a JSON object, first bad.log:8: weir reads JSON lines;',
    );
  });

  test('says at the top which requests exceed a limit that does not deny', async () => {
    const { code, stdout } = await replay('--policy', 'monitoring.yaml', '--map', 'map.yaml', 'access.log');
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^0 of 7 requests would be newly denied \(0%\)\.\n2 requests exceeded a limit that does/,
    );
  });

  test('names both domains if the map is for another one', async () => {
    const { code, stderr } = await replay('--policy', 'other.yaml', '--map', 'map.yaml', 'access.log');
    expect(code).toBe(1);
    expect(stderr).toBe(
      'map.yaml:1:9: domain: the map is for the domain "shop", but other.yaml has the domain "store"; change one of ' +
        'them\n',
    );
  });

  test.each([
    [['access.log'], 'specify the policy with --policy'],
    [['--policy', 'two.yaml'], 'specify at least one log'],
    [['--policy', 'two.yaml', 'access.log', 'access.log'], 'is specified twice'],
    [['--policy', 'two.yaml', '--max-newly-denied', 'few', 'access.log'], 'must be a number of requests'],
    [['--policy', 'two.yaml', '--by', 'authorization', 'access.log'], 'the values of this key are secrets'],
  ])('rejects %j', async (args, message) => {
    const { code, stderr } = await replay(...args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });

  test.each(['gone.log', '.'])('exits with 1 if %s cannot be read', async (log) => {
    const { code, stderr } = await replay('--policy', 'two.yaml', log);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^weir replay: ".+" (?:does not exist|is not a regular file)/);
  });
});
