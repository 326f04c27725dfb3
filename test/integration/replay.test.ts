/* Tests the command `weir replay`: logs, maps, reports and exit codes. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import type { Report } from '../../src/replay/report.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { startProcess } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';
import { CommandHost } from '../support/weir/commands.js';
import { startWeir, WEIR_MAIN } from '../support/weir/weir.js';

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

  test('adds what leases need to the capacity', async () => {
    folder.write('leased.yaml', policy(5, 'lease: { for: 50ms }\n'));
    const { limits } = await reportOf('--policy', 'leased.yaml', 'access.log');
    expect(limits).toMatchObject([
      { deniesNobody: 5, limit: 'token bucket: 4 tokens, 1 every 10s, and 1 for leases' },
    ]);
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
    [['--policy', 'two.yaml', '--json', '-', 'access.log'], '--json writes a file; specify its name'],
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

  test('notices two logs one after the other in one file', async () => {
    folder.write('twice.log', `${LINES.join('\n')}\n${LINES.join('\n')}\n`);
    const args = ['--policy', 'two.yaml', '--map', 'map.yaml', '--max-newly-denied', '100', 'twice.log'];
    const { code, stdout } = await replay(...args);
    expect(code).toBe(4);
    expect(stdout).toContain(
      '--max-newly-denied 100: undecided: 5 requests came too late to be sorted by time.',
    );
    expect(stdout).toMatch(
      /- 5 requests came more than 60 seconds after later ones, .* weir merges them by time\.\n/,
    );
  });

  test('ends a request after its duration', async () => {
    folder.write(
      'slots.yaml',
      'domain: shop\ndescriptors: [{ key: tenant, rate_limit: { concurrency: { max: 1 } } }]\n',
    );
    const timed = readFileSync(join(folder.path, 'map.yaml'), 'utf8');
    folder.write('timed.yaml', `${timed}duration: took\n`);
    const at = (start: string, took: unknown): string => line(`2026-11-20T09:00:${start}Z`, 'acme', { took });
    folder.write(
      'long.log',
      [at('00', '1s'), at('00.9', '1s'), at('01', 'PT1S'), at('02.1', 'soon')].join('\n'),
    );
    const args = ['--policy', 'slots.yaml', '--map', 'timed.yaml', 'long.log'];
    const { stdout } = await replay(...args);
    expect(stdout).toContain(
      '\ntenant                 4       0      1             1    25%              0\n',
    );
    expect(stdout).toContain(
      '\ntenant       2             2           2  concurrency: 1 request, expires after 1m\n',
    );
    expect(stdout).toContain(
      '- 1 request had no readable duration, such as "soon"; plain numbers need duration_unit',
    );
  });

  test('compares the whole log with what it says, and counts lines that are no requests', async () => {
    const start = '2026-11-20T09:00:00Z';
    const lines = [
      line(start, 'acme', { flags: 'RL', details: 'request_rate_limited' }),
      line(start, 'acme', { status: 429 }),
      line(start, undefined),
      line(start, 'acme', { method: undefined }),
      line(start, 'acme', { flags: 'NR', details: 'route_not_found' }),
      line('soon', 'acme'),
    ];
    folder.write('mixed.log', lines.join('\n'));
    const report = await reportOf('--policy', 'four.yaml', 'mixed.log');
    expect(report.total).toEqual({ requests: 2, before: 1, after: 0, newlyDenied: 0, newlyAllowed: 1 });
    expect(report.notes).toContainEqual(expect.stringContaining('Compare two policies with --against.'));
    expect(report.rules).toMatchObject([{ rule: 'tenant', ...report.total }]);
    expect(report.unreadable).toMatchObject([{ lines: 1, first: 'mixed.log:6' }]);
    expect(report.noRequests.map(({ first }) => first)).toEqual([
      'mixed.log:3',
      'mixed.log:4',
      'mixed.log:5',
    ]);
  });

  test('shows names of callers safely', async () => {
    folder.write(
      'hostile.log',
      ['\u001b[2J', 'a\nb', '\u202eevil'].map((one) => line('2026-11-20T09:00:00Z', one)).join('\n'),
    );
    const args = ['--policy', 'two.yaml', '--map', 'map.yaml', '--by', 'tenant', 'hostile.log'];
    const { stdout } = await replay(...args);
    for (const shown of ['\n\ufffd[2J ', '\na\ufffdb ', '\n\ufffdevil ']) expect(stdout).toContain(shown);
  });

  test('names a member that never has a value', async () => {
    folder.write(
      'wrong.yaml',
      'domain: shop\ntime: start\ndescriptors: [[{ key: tenant, from: headers.tenant }]]\n',
    );
    const { code, stdout } = await replay('--policy', 'two.yaml', '--map', 'wrong.yaml', 'access.log');
    expect(code).toBe(1);
    expect(stdout).toContain(
      '- No request has a value of "headers.tenant", which the map names; check its name.\n',
    );
  });

  test('prints a partial report after Ctrl-C', async () => {
    const pipe = join(folder.path, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const writer = await open(pipe, 'r+');
    const command = [process.execPath, WEIR_MAIN, 'replay', '--policy', 'two.yaml', '--map', 'map.yaml'];
    const args = ['-c', 'exec "$0" "$@" < pipe', ...command, '--max-newly-denied', '100%', '-'];
    const started = startProcess('sh', args, { cwd: folder.path });
    // More than fits into the pipe, so that weir is reading once everything is written.
    const start = Date.parse('2026-11-20T09:00:00Z');
    const lines = Array.from({ length: 5000 }, (_, at) =>
      line(new Date(start + at * 1000).toISOString(), 'acme'),
    );
    await writer.write(lines.join('\n'));
    started.signal('SIGINT');
    expect(await started.exited).toMatchObject({ code: 4 });
    expect(started.stdout()).toMatch(/^PARTIAL: the replay was stopped before the end of the logs\.\n/);
    expect(started.stdout()).toContain('undecided: only a part of the logs was read.\n');
    // Lines that were read are not lost while they wait to be sorted.
    const [, read, requests] =
      /Read ([\d,]+) lines of standard input: ([\d,]+) requests/.exec(started.stdout()) ?? [];
    expect(read).toBe(requests);
    await writer.close();
  });

  test('decides the log of a server as the server did', async () => {
    const rules = `domain: shop
descriptors:
  - key: tenant
    rate_limits:
      - { name: burst, token_bucket: { max_tokens: 20, tokens_per_fill: 1, fill_interval: 10ms } }
      - { name: day, unit: day, requests_per_unit: 150 }
      - { name: slots, concurrency: { max: 12, expires_after: 60s } }
`;
    const log = folder.write('decisions.log', '');
    const env = { DECISION_LOG_SAMPLE: 'denied=1,ok=1', DECISION_LOG_FILE: log };
    const server = await startWeir({ policy: rules, env });
    const client = new RlsClient(server.grpcPort);
    const descriptor = (key: string, value: string, hitsAddend?: number) => {
      return { entries: [{ key, value }], limit: undefined, hitsAddend, isNegativeHits: false };
    };
    const tokens: string[] = [];
    let denied = 0;
    for (let at = 0; at < 400; at++) {
      const { response } = await client.ask('shop', [descriptor('tenant', `t${at % 2}`)]);
      const token = response?.dynamicMetadata?.['hold'];
      if (typeof token === 'string') tokens.push(token);
      else denied++;
      const ended = at % 3 === 0 ? tokens.shift() : undefined;
      if (ended !== undefined) await client.ask('shop', [descriptor('hold', ended, 1)]);
    }
    expect(denied).toBeGreaterThan(0);
    expect(await server.stop()).toMatchObject({ code: 0 });
    folder.write('rules.yaml', rules);
    const { code, stderr } = await replay('--policy', 'rules.yaml', '--json', 'report.json', 'decisions.log');
    expect([code, stderr]).toEqual([0, '']);
    const { total } = JSON.parse(readFileSync(join(folder.path, 'report.json'), 'utf8')) as Report;
    expect(total).toEqual({ requests: 400, before: denied, after: denied, newlyDenied: 0, newlyAllowed: 0 });
  });
});
