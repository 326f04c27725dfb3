import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { BucketAnswer, ShownBucket } from '../../../../src/admin/buckets/messages.js';
import { runBucket } from '../../../../src/cli/bucket/bucket.js';
import { TempDir } from '../../../support/process/temp-dir.js';
import {
  type CommandOutput,
  type FakeDebugPort,
  outputOf,
  startFakeDebugPort,
} from '../../../support/weir/fake-debug-port.js';

const folder = new TempDir();
let port: FakeDebugPort;
beforeAll(async () => {
  port = await startFakeDebugPort();
});
afterEach(() => {
  port.asked.length = 0;
  port.answer = undefined;
});

const bucket: ShownBucket = {
  rule: 'tenant/resource_group=user-chats',
  name: 'user-chats',
  algorithm: 'token_bucket',
  limit: 100,
  about: 'token bucket: 100 tokens, 10 every 1s',
  enforcement: 'enforce',
  entries: [
    { key: 'tenant', value: 'acme' },
    { key: 'resource_group', value: 'user-chats' },
  ],
  redis_key: 'weir:1:{248f}8:open-api6:tenant4:acme',
  redis_slot: 4982,
  now: { left: 37, debt: 0, next_token_in: 0.1, full_in: 6.3 },
};
const answer: BucketAnswer = {
  action: 'show',
  dry_run: false,
  domain: 'open-api',
  entries: bucket.entries,
  meets: 'descriptor',
  store: 'memory',
  buckets: [bucket],
  more: 0,
  notes: [],
};

function bucketCommand(...words: string[]): Promise<CommandOutput> {
  return outputOf('bucket', runBucket, [...words, '--address', port.address]);
}

describe('the request', () => {
  test.each<[line: string, question: object]>([
    ['show a=b', { action: 'show', entries: [{ key: 'a', value: 'b' }] }],
    [
      'show shop a=b=c d= --limit 5/minute',
      {
        action: 'show',
        domain: 'shop',
        entries: [
          { key: 'a', value: 'b=c' },
          { key: 'd', value: '' },
        ],
        limit: '5/minute',
      },
    ],
    [
      'reset --domain a=b a=b --rule r --dry-run',
      { action: 'reset', domain: 'a=b', entries: [{ key: 'a', value: 'b' }], rule: 'r', dry_run: true },
    ],
    ['grant a=b --tokens 50', { action: 'grant', entries: [{ key: 'a', value: 'b' }], tokens: 50 }],
    [
      'release a=b --hold A-_1 --rule r',
      { action: 'release', entries: [{ key: 'a', value: 'b' }], hold: 'A-_1', rule: 'r' },
    ],
    [
      'release a=b --all --dry-run',
      { action: 'release', entries: [{ key: 'a', value: 'b' }], all: true, dry_run: true },
    ],
  ])('%s', async (line, question) => {
    port.answer = () => ({ body: answer });
    expect(await bucketCommand(...line.split(' '))).toMatchObject({ code: 0, err: '' });
    expect(port.asked).toMatchObject([{ path: '/buckets', headers: { 'content-type': 'application/json' } }]);
    expect(port.asked[0]?.body).toEqual(question);
    expect(port.asked[0]?.headers).not.toHaveProperty('authorization');
  });

  test.each<[line: string, sentence: string]>([
    ['', 'specify an action: show, reset, grant,'],
    ['shwo', 'unknown action "shwo" (did you mean show?)'],
    [
      'exempt',
      'unknown action "exempt"; the actions are show, reset, grant, release, new-token. To block or exempt a ' +
        'customer, set blocked or unlimited in the table of plans; see weir bucket --help',
    ],
    [
      'blok',
      'unknown action "blok"; weir bucket block was removed; set "blocked: true" for the customer in the',
    ],
    ['show', 'specify at least one entry as key=value'],
    ['show shop acme', 'argument 2 is not of the form key=value'],
    ['show a=b + c=d', '"+" begins another descriptor, but weir bucket accepts only one'],
    ['show shop a=b --domain shop', 'the domain is specified twice'],
    ['show a=b --tokens 5', '--tokens has no effect on show; use it with weir bucket grant'],
    ['show a=b --watch=1', '--watch "1" is not a duration'],
    ['grant a=b', 'specify the number of tokens with --tokens <n>'],
    ['grant a=b --tokens 0', '--tokens must be a whole number of 1 or more'],
    ['grant a=b --tokens 1e3', '--tokens must be a whole number of 1 or more'],
    ['release a=b', 'specify the hold with --hold <id>'],
    ['release a=b --hold x --all', 'specify the hold with --hold <id>'],
    ['show a=b --all', '--all has no effect on show; use it with weir bucket release'],
    ['show a=b --adress h:1', 'unknown option --adress (did you mean --address?)'],
  ])('%j is invalid', async (line, sentence) => {
    const { code, out, err } = await outputOf('bucket', runBucket, line.split(' ').filter(Boolean));
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain(sentence);
    expect(err).toMatch(/^weir bucket.*\n$/);
  });

  test('no error message repeats a possible secret', async () => {
    const { code, err } = await outputOf('bucket', runBucket, ['show', 'shop', 'sekrit']);
    expect([code, err]).toEqual([2, expect.not.stringContaining('sekrit')]);
  });
});

test('entries in a file precede entries on the command line', async () => {
  port.answer = () => ({ body: answer });
  const file = folder.write('entries', 'api_key=a=b\r\n\nuser= ann\n');
  await bucketCommand('show', 'shop', 'path=/', '--entries', file);
  expect(port.asked[0]?.body).toMatchObject({
    domain: 'shop',
    entries: [
      { key: 'api_key', value: 'a=b' },
      { key: 'user', value: ' ann' },
      { key: 'path', value: '/' },
    ],
  });
});

describe('the output', () => {
  test('a limit with its remaining tokens', async () => {
    port.answer = () => ({ body: answer });
    expect((await bucketCommand('show', 'tenant=acme')).out).toBe(`\
domain   open-api
entries  tenant=acme resource_group=user-chats
server   http://${port.address}
store    memory

LEFT  LIMIT  DEBT  RESET IN  FULL IN  ENFORCED  RULE
  37    100     -      0.1s     6.3s  yes       tenant/resource_group=user-chats (user-chats)
      token bucket: 100 tokens, 10 every 1s
      Redis key weir:1:{248f}8:open-api6:tenant4:acme, slot 4982
`);
  });

  test('a concurrency limit with its requests in flight, and without times', async () => {
    const slots: ShownBucket = {
      ...bucket,
      algorithm: 'concurrency',
      limit: 10,
      about: 'concurrency: 10 requests',
      redis_key: null,
      now: { left: 7, debt: 0, next_token_in: null, full_in: null, in_flight: 3 },
    };
    port.answer = () => ({ body: { ...answer, buckets: [slots] } });
    expect((await bucketCommand('show', 'tenant=acme')).out.split('\n').slice(5)).toEqual([
      'LEFT  LIMIT  DEBT  RESET IN  FULL IN  ENFORCED  RULE',
      '   7     10     -         -        -  yes       tenant/resource_group=user-chats (user-chats)',
      '      concurrency: 10 requests',
      '      in flight: 3 of 10',
      '',
    ]);
  });

  test('holds with their times, amounts and IDs', async () => {
    const held: ShownBucket = {
      ...bucket,
      redis_key: null,
      holds: {
        list: [
          { id: 'AQab', amount: 5000, age: 75, ends_in: 525 },
          { id: 'AQcd', amount: 1, age: 0.2, ends_in: 599.8 },
        ],
        more: 3,
      },
    };
    port.answer = () => ({ body: { ...answer, buckets: [held] } });
    expect((await bucketCommand('show', 'tenant=acme')).out.split('\n').slice(7)).toEqual([
      '      token bucket: 100 tokens, 10 every 1s',
      '        AGE  EXPIRES IN  HELD  HOLD',
      '      1m15s       8m45s  5000  AQab',
      '       0.2s      10m00s     1  AQcd',
      '      and 3 more, not listed',
      '',
    ]);
  });

  test('a change with the values before and after, the affected callers, and notes', async () => {
    const changed: BucketAnswer = {
      ...answer,
      action: 'grant',
      dry_run: true,
      meets: 'part',
      entries: [{ key: 'api_key', value: '[redacted sha256:0123abcd]' }],
      buckets: [
        {
          ...bucket,
          before: { left: 0, debt: 12, next_token_in: 1.3, full_in: 11.2 },
          now: { left: 38, debt: 0, next_token_in: 0.1, full_in: 6.2 },
        },
        {
          ...bucket,
          rule: 'override',
          name: '',
          now: undefined as never,
          redis_key: null,
          note: 'No value.',
        },
      ],
      more: 3,
      notes: ['The bucket is in memory.'],
    };
    port.answer = () => ({ body: changed });
    expect(await bucketCommand('grant', 'a=b', '--tokens', '50', '--dry-run')).toEqual({
      code: 0,
      err: '',
      out: `dry run of grant: no changes were made
domain   open-api
entries  api_key=[redacted sha256:0123abcd]
server   http://${port.address}
store    memory

Limits that could apply to descriptors with these entries:

   LEFT  LIMIT     DEBT  RESET IN  FULL IN  ENFORCED  RULE
0 -> 38    100  12 -> -      0.1s     6.2s  yes       tenant/resource_group=user-chats (user-chats)
      token bucket: 100 tokens, 10 every 1s
      for tenant=acme resource_group=user-chats
      Redis key weir:1:{248f}8:open-api6:tenant4:acme, slot 4982
      ?    100        ?         ?        ?  yes       override
      token bucket: 100 tokens, 10 every 1s
      No value.
Limits not listed: 3. To see these limits, enter more entries.

The bucket is in memory.
`,
    });
  });

  test.each<[what: string, body: Partial<BucketAnswer>, code: number]>([
    ['show of what no limit meets', { meets: 'nothing', buckets: [] }, 1],
    ['release of an unknown bucket', { action: 'release', buckets: [] }, 1],
    ['reset of nothing', { action: 'reset', meets: 'nothing', buckets: [] }, 1],
  ])('the exit code for %s', async (_what, body, code) => {
    port.answer = () => ({ body: { ...answer, ...body } });
    expect((await bucketCommand('show', 'a=b')).code).toBe(code);
  });

  test('--json prints the answer of the server; with --watch, one line each until the pipe closes', async () => {
    port.answer = () => ({ body: answer });
    const once = await bucketCommand('show', 'a=b', '--json');
    expect(JSON.parse(once.out)).toEqual(answer);
    const words = ['show', 'a=b', '--json', '--watch=1ms', '--address', port.address];
    const { code, out } = await outputOf(
      'bucket',
      runBucket,
      words,
      {},
      (text) => text.split('\n').length < 4,
    );
    expect([
      code,
      out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ]).toEqual([0, [answer, answer, answer]]);
  });
});

describe('errors', () => {
  test.each<[status: number, body: unknown, sentence: RegExp]>([
    [400, { error: 'tokens: must be whole.' }, /:\d+: tokens: must be whole\n$/],
    [
      401,
      { error: 'a token is needed' },
      /a token is needed; set --token-file .*, or set WEIR_ADMIN_TOKEN\n$/,
    ],
    [403, { error: 'only from this machine' }, /: only from this machine\n$/],
    [404, { error: 'no such hold' }, /: no such hold\n$/],
    [500, '', /\/buckets returned HTTP status 500; check the server/],
    [200, { ok: true }, /the answer to \/buckets does not come from weir/],
    [200, 'null', /the answer to \/buckets does not come from weir/],
    [302, '', /HTTP status 302/],
    [503, { error: 'a\u001b[31m\nb' }, /: a\\u001b\[31m\\u000ab\n$/],
  ])('HTTP status %d with %j causes an error message', async (status, body, sentence) => {
    port.answer = () => ({ status, body });
    const { code, out, err } = await bucketCommand('show', 'a=b');
    expect([code, out]).toEqual([1, '']);
    expect(err).toMatch(sentence);
  });

  test.each(['action', 'domain', 'entries', 'meets', 'buckets', 'notes'])(
    'an answer whose %s is of another kind',
    async (field) => {
      port.answer = () => ({ body: { ...answer, [field]: { odd: true } } });
      const { code, out, err } = await bucketCommand('show', 'a=b');
      expect([code, out]).toEqual([1, '']);
      expect(err).toMatch(/the answer to \/buckets does not come from weir/);
    },
  );

  test.each([
    ['reset', true],
    ['reset --dry-run', false],
    ['show', false],
  ])('%s whose answer is lost: reports an unknown result', async (line, open) => {
    const { code, err } = await bucketCommand(...line.split(' '), 'a=b');
    expect([code, err.includes('the server may have made the change')]).toEqual([1, open]);
    expect(err).toMatch(/the call to http:/);
  });

  test('an environment without a server', async () => {
    const named = await outputOf('bucket', runBucket, ['show', 'a=b'], { DEBUG_PORT: 'abc' });
    expect(named).toMatchObject({ code: 1, err: expect.stringContaining('DEBUG_PORT: "abc" is not a port') });
    const free = await outputOf('bucket', runBucket, ['show', 'a=b'], { DEBUG_PORT: '0' });
    expect(free).toMatchObject({ code: 1, err: expect.stringContaining('DEBUG_PORT is 0') });
  });
});

describe('the server and the token', () => {
  test('the server of the environment, on loopback if it listens everywhere', async () => {
    port.answer = () => ({ body: answer });
    const environment = { DEBUG_HOST: '0.0.0.0', DEBUG_PORT: port.address.split(':')[1] };
    expect(await outputOf('bucket', runBucket, ['show', 'a=b'], environment)).toMatchObject({ code: 0 });
    const url = await outputOf('bucket', runBucket, ['show', 'a=b', '--address', `http://${port.address}/`]);
    expect(url).toMatchObject({ code: 0 });
  });

  test('the token is read from a file, otherwise from the variable', async () => {
    port.answer = () => ({ body: answer });
    const file = folder.write('token', 'from-file\n');
    await outputOf('bucket', runBucket, ['show', 'a=b', '--address', port.address], {
      WEIR_ADMIN_TOKEN: 'variable',
    });
    await bucketCommand('show', 'a=b', '--token-file', file);
    expect(port.asked.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer variable',
      'Bearer from-file',
    ]);
  });

  test.each([
    ['', 'does not contain a token'],
    ['two sekrit', 'does not contain a token'],
    [`ann write sha256:${'0'.repeat(64)}`, 'contains a token'],
  ])('a file with %j', async (content, sentence) => {
    const { code, err } = await bucketCommand('show', 'a=b', '--token-file', folder.write('bad', content));
    expect([code, err]).toEqual([1, expect.stringContaining(sentence)]);
    expect(err).not.toContain('sekrit');
    expect(port.asked).toEqual([]);
  });

  test('a plain-text server that is called over TLS, and a server without HTTP', async () => {
    const { code, err } = await outputOf('bucket', runBucket, [
      'show',
      'a=b',
      '--address',
      `https://${port.address}`,
    ]);
    expect([code, err]).toEqual([1, expect.stringContaining('if it does not speak TLS, write http://')]);
  });
});
