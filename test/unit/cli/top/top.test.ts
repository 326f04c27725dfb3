import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { TopAnswer, TopBucket } from '../../../../src/admin/buckets/messages.js';
import { mergeTop } from '../../../../src/cli/top/merge-top.js';
import { findReplicas, MAX_REPLICAS, readReplicas } from '../../../../src/cli/top/replicas.js';
import { runTop } from '../../../../src/cli/top/top.js';
import { press, type TopState, topScreen } from '../../../../src/cli/top/top-state.js';
import {
  type CommandOutput,
  type FakeDebugPort,
  outputOf,
  startFakeDebugPort,
} from '../../../support/weir/fake-debug-port.js';

let ports: readonly FakeDebugPort[];
beforeAll(async () => {
  ports = await Promise.all([startFakeDebugPort(), startFakeDebugPort()]);
});
afterEach(() => {
  for (const port of ports) {
    port.asked.length = 0;
    port.answer = undefined;
  }
});
afterAll(() => Promise.all(ports.map((port) => port.close())));

function bucket(tenant: string, denied: number, used: number, more: Partial<TopBucket> = {}): TopBucket {
  const entries = [{ key: 'tenant', value: tenant }];
  return {
    domain: 'open-api',
    rule: 'tenant',
    entries,
    denied,
    denied_error: 1,
    used,
    used_error: 2,
    used_ratio: 0.5,
    ...more,
  };
}

function answerOf(...top: TopBucket[]): TopAnswer {
  return { of: 'minute', by: 'denied', covers: 60, error: { denied: 3, used: 12 }, sampled: 1, top };
}

function topCommand(...words: string[]): Promise<CommandOutput> {
  return outputOf(runTop, words);
}

describe('weir top without a terminal', () => {
  test('prints the table once', async () => {
    const [port] = ports as [FakeDebugPort];
    port.answer = () => ({
      body: answerOf(bucket('acme', 1234, 56_789, { used_ratio: 1 }), bucket('b c', 0, 7)),
    });
    expect(await topCommand('--address', port.address)).toEqual({
      code: 0,
      err: '',
      out: `most denied in the last minute, ${port.address}
numbers are too high by at most 3 denied requests and 12 used hits

DENIED   USED  OF LIMIT  RULE    ENTRIES
  1234  56789      100%  tenant  tenant=acme
     0      7       50%  tenant  tenant='b c'
`,
    });
    expect(port.asked).toMatchObject([{ path: '/top', body: { by: 'denied', of: 'minute', limit: 20 } }]);
  });

  test('sends the options; --json prints the answer', async () => {
    const [port] = ports as [FakeDebugPort];
    port.answer = () => ({ body: answerOf() });
    const words = '--by used --of hour --domain d --rule r --limit 1000 --json'.split(' ');
    const { code, out } = await topCommand('--address', port.address, ...words);
    expect([code, JSON.parse(out)]).toEqual([0, answerOf()]);
    expect(port.asked[0]?.body).toEqual({ by: 'used', of: 'hour', domain: 'd', rule: 'r', limit: 1000 });
    expect((await topCommand('--address', port.address)).out).toContain(
      'no requests were denied in the last minute',
    );
  });

  test('shows the errors of the numbers', async () => {
    const [port] = ports as [FakeDebugPort];
    const exact = { ...answerOf(), error: { denied: 0, used: 0 } };
    port.answer = () => ({ body: exact });
    expect((await topCommand('--address', port.address)).out).toContain('\nexact numbers\n');
    port.answer = () => ({ body: { ...answerOf(), sampled: 8, covers: 34 } });
    expect((await topCommand('--address', port.address)).out).toContain(
      'denied requests and 12 used hits; estimated from 1 in 8 decisions; only 34s of data so far\n',
    );
  });

  test('--all adds up all replicas, and lists replicas that do not answer', async () => {
    const [one, two] = ports as [FakeDebugPort, FakeDebugPort];
    one.answer = () => ({ body: answerOf(bucket('acme', 5, 10, { used_ratio: 0.9 }), bucket('b', 6, 0)) });
    two.answer = () => ({ body: answerOf(bucket('acme', 2, 1)) });
    const all = await topCommand('--all', `${one.address},${two.address},127.0.0.1:1`);
    expect(all.code).toBe(1);
    expect(all.out).toContain(
      '2 of 3 replicas\nnumbers are too high by at most 6 denied requests and 24 used hits\n',
    );
    expect(all.out).toMatch(/ 7 {4}11 +90% .*acme\n +6 +0 +50% .*tenant=b\n$/);
    expect(all.err).toMatch(/nothing listens on http:\/\/127\.0\.0\.1:1; /);
    expect(one.asked[0]?.body).toMatchObject({ limit: 1000 });
  });

  test('--all counts a server with two addresses once', async () => {
    const [one, two] = ports as [FakeDebugPort, FakeDebugPort];
    one.answer = () => ({ body: { ...answerOf(bucket('acme', 5, 10)), server: 'a' } });
    two.answer = one.answer;
    const all = await topCommand('--all', `${one.address},${two.address}`);
    expect(all).toMatchObject({ code: 0, err: '' });
    expect(all.out).toMatch(/, 1 of 1 replicas\n(.*\n)+ +5 +10 /);
  });

  test.each([
    ['now', 'this command accepts options, but no other arguments'],
    ['--by rule', '--by must be denied or used'],
    ['--of day', '--of must be minute or hour'],
    ['--limit 0', '--limit must be a whole number from 1 to 1000'],
    ['--limit 1001', '--limit must be'],
    ['--every 1', '--every "1" is not a duration'],
    ['--all a:1 --address b:1', 'remove --address'],
    ['--all a', '"a" is not of the form host:port'],
    ['--all dns:a', '"a" is not of the form host:port'],
    ['--rul r', 'did you mean --rule'],
  ])('%s is invalid', async (line, sentence) => {
    const { code, out, err } = await topCommand(...line.split(' '));
    expect([code, out, err]).toEqual([2, '', expect.stringContaining(sentence)]);
  });

  test('a server that does not answer', async () => {
    const [port] = ports as [FakeDebugPort];
    port.answer = () => ({ status: 403, body: { error: 'not from here' } });
    expect(await topCommand('--address', port.address)).toEqual({
      code: 1,
      out: '',
      err: `weir top: http://${port.address}: not from here\n`,
    });
  });
});

describe('replicas', () => {
  test('additional spaces and commas are ignored', () => {
    expect(readReplicas(' a:1, b:2 ,', false)).toEqual(readReplicas('a:1,b:2', false));
    expect(readReplicas(' ,', false)).toMatch(/^--all contains no address/);
  });

  test.each([
    { top: [null], error: {}, covers: 1 },
    { top: [{}], error: { denied: 0, used: 0 }, covers: 1, sampled: 1 },
    null,
    [],
  ])('another service, which answers %j', async (body) => {
    const [one, other] = ports as [FakeDebugPort, FakeDebugPort];
    one.answer = () => ({ body });
    other.answer = () => ({ body: answerOf(bucket('acme', 1, 1)) });
    const { code, out, err } = await topCommand('--all', `${one.address},${other.address}`);
    expect([code, err]).toEqual([1, expect.stringContaining('does not come from weir')]);
    expect(out).toContain('1 of 2 replicas');
  });

  test('addresses and names, in clear text and over TLS, each once', async () => {
    const list = readReplicas('10.0.0.1:6070,https://b:1,10.0.0.1:6070,dns:localhost:7', false);
    if (typeof list === 'string') throw new Error(list);
    const { servers, problems } = await findReplicas(list, 5000);
    expect(problems).toEqual([]);
    expect(servers.slice(0, 2)).toEqual([
      { tls: false, host: '10.0.0.1', port: 6070 },
      { tls: true, host: 'b', port: 1 },
    ]);
    // Only one address family is used, and the certificate must match the name.
    expect(servers).toHaveLength(3);
    const host = expect.stringMatching(/^(127|::1)/);
    expect(servers[2]).toMatchObject({ host, certificateName: 'localhost' });
  });

  test('a name without addresses, and too many replicas', async () => {
    const none = readReplicas('dns:nobody.invalid:1', false);
    if (typeof none === 'string') throw new Error(none);
    expect(await findReplicas(none, 5000)).toMatchObject({
      servers: [],
      problems: [expect.stringMatching(/^the addresses of dns:nobody\.invalid cannot be found/)],
    });
    const many = readReplicas(Array.from({ length: 300 }, (_, at) => `h${at}:1`).join(','), false);
    if (typeof many === 'string') throw new Error(many);
    const { servers, problems } = await findReplicas(many, 5000);
    expect([servers.length, problems]).toEqual([
      MAX_REPLICAS,
      ['there are 300 replicas, but weir top calls only 256; the numbers do not include the other replicas'],
    ]);
  });

  test('buckets are the same by domain, rule and entries only', () => {
    const merged = mergeTop(
      [
        answerOf(bucket('a', 1, 1), bucket('a', 1, 1, { rule: 'other' })),
        answerOf(bucket('a', 1, 1, { domain: 'd' })),
      ],
      { by: 'used', of: 'hour', limit: 2 },
    );
    expect(merged).toMatchObject({ by: 'used', of: 'hour', top: [{ used: 1 }, { used: 1 }] });
  });

  test('limit overrides are separate buckets', () => {
    const brought = (limit: string) => bucket('a', 1, 1, { rule: 'override', limit });
    const merged = mergeTop([answerOf(brought('3/day'), brought('4/day')), answerOf(brought('3/day'))], {
      by: 'used',
      of: 'hour',
      limit: 9,
    });
    expect(merged.top.map(({ limit, used }) => [limit, used])).toEqual([
      ['3/day', 2],
      ['4/day', 1],
    ]);
  });
});

describe('the screen', () => {
  const target = { kind: 'one', server: { tls: false, host: '127.0.0.1', port: 6070 } } as const;
  const size = { columns: 80, rows: 24 };
  const state: TopState = {
    question: { by: 'denied', of: 'minute', limit: 200 },
    filter: '',
    typing: undefined,
    offset: 0,
    isPaused: false,
    showsHelp: false,
    asked: {
      answer: answerOf(...Array.from({ length: 50 }, (_, at) => bucket(`t${at}`, 100 - at, at))),
      asked: 1,
      answered: 1,
      problems: [],
    },
    at: '12:03:11',
  };
  /** Returns the state after pressing keys, each one character or a name in angle brackets. */
  const pressing = (keys: string, from = state): TopState =>
    (keys.match(/<\w+>|./g) ?? []).reduce((now, key) => {
      const name = /^<(\w+)>$/.exec(key)?.[1];
      return press(now, name === undefined ? { text: key, name: key } : { text: '', name }, size.rows).state;
    }, from);
  const lines = (now: TopState, on = size): readonly string[] => topScreen(now, target, on);
  /** Removes the markers for reverse video. */
  const plainLine = (line: string): string => line.replace(/[\ue000\ue001]/g, '');

  test('fits 80 columns and 24 lines', () => {
    const seen = lines(state);
    expect(seen).toHaveLength(24);
    expect(seen.filter((line) => plainLine(line).length > 79)).toEqual([]);
    expect(seen[0]).toBe('weir top: most denied in the last minute   127.0.0.1:6070   12:03:11');
    expect(seen[4]).toBe('    100        0       50%  tenant  tenant=t0');
    expect(seen[23]).toMatch(/^1-19 of 50 .*q quit$/);
  });

  test.each([20, 24, 30, 40, 60, 80, 132])(
    'no heading is cut or runs into another on %d columns',
    (columns) => {
      const [heading = '', row = ''] = lines(state, { ...size, columns })
        .slice(3)
        .map(plainLine);
      const words = heading.trim().split(/ {2,}/);
      const all = ['DENIED', 'USED', 'OF LIMIT', 'RULE', 'ENTRIES'];
      expect(words).toEqual(all.filter((word) => words.includes(word)));
      expect(words).toEqual(
        expect.arrayContaining(columns < 25 ? ['DENIED', 'RULE'] : ['DENIED', 'RULE', 'ENTRIES']),
      );
      if (columns >= 45) expect(words).toEqual(all);
      expect(Math.max(heading.length, row.length)).toBeLessThan(columns);
      // Numbers are right-aligned with their headings.
      for (const word of words.slice(0, words.indexOf('RULE'))) {
        expect(row.slice(0, heading.indexOf(word) + word.length)).toMatch(/[0-9%]$/);
      }
    },
  );

  test('keys sort, choose, filter, scroll, and quit', () => {
    expect(lines(pressing('s'))[4]).toContain('tenant=t49');
    expect(pressing('h').question.of).toBe('hour');
    expect(pressing('hm').question.of).toBe('minute');
    expect(pressing('hs').question).toMatchObject({ of: 'hour', by: 'used' });
    expect(lines(pressing('/T4'))[23]).toMatch(/^\/T4_ /);
    expect(lines(pressing('/T4<return>'))[4]).toContain('tenant=t4');
    expect(lines(pressing('/T4<return>'))[23]).toMatch(/^\/T4 /);
    expect(pressing('/sq<backspace><backspace><backspace><return>').filter).toBe('');
    expect(pressing('/abc<escape>')).toMatchObject({ filter: '', typing: undefined });
    expect(pressing('/x<return><escape>').filter).toBe('');
    expect(lines(pressing('/nobody<return>'))[4]).toBe('no row contains this text');
    expect(pressing('<down><down><up>').offset).toBe(1);
    expect(pressing('<up>').offset).toBe(0);
    expect(pressing('<end>').offset).toBe(31);
    expect(pressing('<pagedown><pagedown><pagedown>').offset).toBe(31);
    expect(pressing('<end><home>').offset).toBe(0);
    expect(lines(pressing('<end>')).at(-1)).toMatch(/^32-50 of 50 /);
    expect(press(state, { text: 'q', name: 'q' }, 24).quits).toBe(true);
    expect(press(state, { text: 's', name: 's' }, 24).refreshes).toBe(true);
    expect(lines(pressing('p'))[0]).toMatch(/ {3}paused$/);
    expect(lines(pressing('?')).join('\n')).toContain('q         quit');
  });

  test('an error is shown above the last answer, and completely in the help', () => {
    const failed = {
      ...state,
      asked: { ...state.asked, answered: 0, problems: ['one\u001b failed', 'two'] },
    };
    expect(lines(failed)[1]).toBe('! one\ufffd failed (and 1 more)');
    expect(lines(failed)[4]).toContain('tenant=t0');
    expect(lines(pressing('?', failed))).toEqual(expect.arrayContaining(['! one\ufffd failed', '! two']));
  });

  test('wide values, many domains and large numbers stay in their columns', () => {
    const top = [
      bucket('\u65e5\u672c\u8a9e'.repeat(40), 1e15, 123_456_789, {
        rule: 'a/very/long/rule'.repeat(5),
        used_ratio: 12.3,
      }),
      bucket('b', 1, 2, { domain: 'other' }),
    ];
    const seen = lines({ ...state, asked: { ...state.asked, answer: answerOf(...top) } });
    expect(seen[4]).toMatch(/^ {2}1000T {5}123M {5}1230% {2}open-api: a\/very.*\u2026 {2}tenant=/);
    expect(seen[5]).toMatch(/^ {6}1 {8}2 {7}50% {2}other: tenant +tenant=b$/);
  });
});
