/* Tests that `weir replay` says what to do about logs and maps that it cannot read. */
import { describe, expect, test } from '@jest/globals';
import { TempDir } from '../support/process/temp-dir.js';
import { CommandHost } from '../support/weir/commands.js';

const folder = new TempDir();
const host = new CommandHost();

const MAP = `domain: shop
time: time
method: method
flags: flags
descriptors: [[{ key: tenant, from: tenant }]]
`;
folder.write(
  'policy.yaml',
  'domain: shop\ndescriptors: [{ key: tenant, rate_limit: { token_bucket: { max_tokens: 2, fill_interval: 10s } } }]\n',
);
folder.write('map.yaml', MAP);

const LINE = { time: '2026-11-20T09:00:00.100Z', method: 'GET', flags: '-', tenant: 'acme' };
const GOOD = JSON.stringify(LINE);
const replay = async (log: string | Buffer, ...args: readonly string[]) => {
  folder.write('access.log', log as string);
  const all = ['replay', '--policy', 'policy.yaml', '--map', 'map.yaml', ...args, 'access.log'];
  const { code, stdout, stderr } = await host.run({ args: all, folder: folder.path });
  expect(stderr).toBe('');
  return { code, stdout };
};

describe.each<[log: string, text: string, remedy: string]>([
  [
    'with the prefix of a Kubernetes node',
    `2026-11-20T09:00:00.1Z stdout F ${GOOD}\n`,
    'remove what each line has before and after its JSON object',
  ],
  [
    'packed by Docker',
    `${JSON.stringify({ log: `${GOOD}\n`, stream: 'stdout', time: LINE.time })}\n`,
    'jq -rj .log',
  ],
  [
    'with one object over several lines',
    `${JSON.stringify(LINE, null, 2)}\n`,
    'convert the log with jq -c .',
  ],
  ['that is an array', `${JSON.stringify([LINE, LINE])}\n`, "convert the log with jq -c '.[]'"],
  ['that is an array over several lines', `[\n${GOOD},\n${GOOD},\n{}]\n`, "convert the log with jq -c '.[]'"],
  [
    'in a text format',
    `[${LINE.time}] "GET / HTTP/1.1" 200 - via_upstream 0 5 "-"\n`,
    'weir reads JSON lines; docs/operate/replay.md shows how',
  ],
  ['in UTF-16', Buffer.from(`\ufeff${GOOD}\n`, 'utf16le').toString('latin1'), 'weir reads UTF-8 and gzip'],
  [
    'without the value of an entry',
    `${JSON.stringify({ ...LINE, tenant: null })}\n`,
    '"tenant" is null in this line',
  ],
  [
    'without the time',
    `${JSON.stringify({ ...LINE, time: undefined, ts: 1 })}\n`,
    'but the line has: method, flags, tenant, ts',
  ],
  [
    'with a time in another format',
    `${JSON.stringify({ ...LINE, time: '20/Nov/2026:09:00:00' })}\n`,
    '"time" is "20/Nov/2026:09:00:00"; a time is RFC 3339 with a time zone',
  ],
  [
    'without a method',
    `${JSON.stringify({ ...LINE, method: undefined })}\n`,
    '"method" in the map is "method"',
  ],
  [
    'without the values of descriptors',
    `${JSON.stringify({ ...LINE, tenant: undefined, 'x-tenant': 'acme' })}\n`,
    '"from" in the map is "tenant", but the line has: time, method, flags, x-tenant',
  ],
])('a log %s', (_, text, remedy) => {
  test('ends with a remedy', async () => {
    const { code, stdout } = await replay(text);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^There is nothing to replay: no line of the logs is a request\.\n/);
    expect(stdout).toContain(remedy);
    expect(stdout).not.toContain('REQUESTS');
  });
});

test('an access log without a map is not a decision log', async () => {
  folder.write('access.log', `${GOOD}\n`);
  const args = ['replay', '--policy', 'policy.yaml', 'access.log'];
  const { code, stdout } = await host.run({ args, folder: folder.path });
  expect(code).toBe(1);
  expect(stdout).toContain("for a log that is not weir's decision log, pass a map with --map");
});

test('a report about a log with unreadable lines begins with a warning; a cut line needs no remedy', async () => {
  const { code, stdout } = await replay(`${GOOD}\n${GOOD.slice(0, 30)}`);
  expect(code).toBe(0);
  expect(stdout).toContain('\nThese numbers are not reliable: 1 of 2 lines cannot be read.\n');
  expect(stdout).toContain('- Unreadable: 1 line not a JSON object, first access.log:2\n');
});

test('a key that no request has is named', async () => {
  const { stdout } = await replay(`${GOOD}\n`, '--by', 'tenent');
  expect(stdout).toContain('No request has an entry "tenent"');
});

test('a policy without a rule for any request gives no verdict', async () => {
  folder.write('key.yaml', MAP.replace('key: tenant', 'key: customer'));
  const { code, stdout } = await replay(`${GOOD}\n`, '--map', 'key.yaml', '--max-newly-denied', '0');
  expect(code).toBe(4);
  expect(stdout).toContain('--max-newly-denied 0: undecided: no request matches a rule of the policy.\n');
  expect(stdout).toContain(
    '- No request matches a rule of policy.yaml. Compare the keys of the descriptors in key.yaml (customer) with the ' +
      'rules of the policy: tenant.\n',
  );
});

test('names the rules that newly deny a caller if several rules deny', async () => {
  const rule = (value: string): string =>
    `{ key: tenant, value: ${value}, rate_limit: { unit: day, requests_per_unit: 1 } }`;
  folder.write('values.yaml', `domain: shop\ndescriptors: [${rule('acme')}, ${rule('zoo')}]\n`);
  const zoo = JSON.stringify({ ...LINE, tenant: 'zoo' });
  const log = `${[GOOD, GOOD, GOOD, zoo, zoo].join('\n')}\n`;
  const { stdout } = await replay(log, '--policy', 'values.yaml', '--by', 'tenant');
  expect(stdout).toContain(`
TENANT  REQUESTS  BEFORE  AFTER  NEWLY DENIED  SHARE  NEWLY ALLOWED  NEWLY DENIED BY
acme           3       0      2             2    67%              0  tenant=acme
zoo            2       0      1             1    50%              0  tenant=zoo
`);
});

test('names hits that are not a number', async () => {
  folder.write('hits.yaml', `${MAP}hits: { from: size }\n`);
  const { stdout } = await replay(`${JSON.stringify({ ...LINE, size: 'big' })}\n`, '--map', 'hits.yaml');
  expect(stdout).toContain(
    '1 line with hits that are not a whole number, first access.log:1: "size" is "big".\n',
  );
});

test('a decision log needs no map', async () => {
  const entries = [{ key: 'tenant', value: 'acme' }];
  const { code, stdout } = await replay(
    `${JSON.stringify({ decision: 1, time: LINE.time, domain: 'shop', descriptors: [{ entries }] })}\n`,
  );
  expect(code).toBe(1);
  expect(stdout).toContain("this is weir's decision log, which needs no map; remove --map");
});

test('a log that is shorter than the window of a limit is too short for a number', async () => {
  folder.write(
    'hour.yaml',
    'domain: shop\ndescriptors: [{ key: tenant, rate_limit: { unit: hour, requests_per_unit: 1 } }]\n',
  );
  const { stdout } = await replay(`${GOOD}\n`, '--policy', 'hour.yaml');
  expect(stdout).toContain(
    'tenant: the log is shorter than one window of this limit; replay a log that contains',
  );
});

test('a caller that exceeds the refill all the time needs a larger refill', async () => {
  const start = Date.parse(LINE.time);
  const steady = Array.from({ length: 100 }, (_, at) =>
    JSON.stringify({ ...LINE, time: new Date(start + at * 1000).toISOString() }),
  );
  const { stdout } = await replay(`${steady.join('\n')}\n`);
  expect(stdout).toContain('raise the refill to 10 every 10s.\n');
});

test('a member that no request has is named', async () => {
  folder.write('or.yaml', MAP.replace('from: tenant', 'from: tennant, or: nobody'));
  const { stdout } = await replay(`${GOOD}\n{"method":""}\n`, '--map', 'or.yaml');
  expect(stdout).toContain('No request has a value of "tennant", which the map names; check its name.');
});

test('a map with operators of Envoy is an error', async () => {
  folder.write('operators.yaml', MAP.replace('time: time', 'time: "%START_TIME%"'));
  const args = ['replay', '--policy', 'policy.yaml', '--map', 'operators.yaml', 'access.log'];
  expect(await host.run({ args, folder: folder.path })).toMatchObject({
    code: 1,
    stderr:
      'operators.yaml:2:7: time: "%START_TIME%" is an operator of Envoy\'s log format; write the name of the member ' +
      'that it sets\n',
  });
});

test('one log under two names is an error', async () => {
  const args = ['replay', '--policy', 'policy.yaml', '--map', 'map.yaml', 'access.log', './access.log'];
  expect(await host.run({ args, folder: folder.path })).toMatchObject({ code: 2 });
});

test('a limit that denies requests which another limit has denied does not deny them newly', async () => {
  folder.write(
    'two.yaml',
    'domain: shop\ndescriptors: [{ key: tenant, rate_limits: [{ name: a, unit: day, requests_per_unit: 1 }, ' +
      '{ name: b, unit: day, requests_per_unit: 1 }] }]\n',
  );
  const lines = ['OK', 'OVER_LIMIT'].map((code) =>
    JSON.stringify({
      ...{ decision: 1, time: LINE.time, domain: 'shop', code, sample: 1, micros: 1 },
      descriptors: [{ entries: [{ key: 'tenant', value: 'acme' }], hits: 1, rule: 'tenant[a]', code }],
    }),
  );
  folder.write('decisions.jsonl', `${lines.join('\n')}\n`);
  const args = ['replay', '--policy', 'two.yaml', 'decisions.jsonl'];
  const { stdout } = await host.run({ args, folder: folder.path });
  for (const rule of ['tenant\\[a\\]', 'tenant\\[b\\]', '\\(all requests\\)'])
    expect(stdout).toMatch(new RegExp(`^${rule} +2 +1 +1 +0 +0% +0$`, 'm'));
});
