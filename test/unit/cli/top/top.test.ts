import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { TopAnswer, TopBucket } from '../../../../src/admin/buckets/messages.js';
import { findReplicas, MAX_REPLICAS, readReplicas } from '../../../../src/cli/top/replicas.js';
import { mergeTop, runTop } from '../../../../src/cli/top/top.js';
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
  return outputOf('top', runTop, words);
}

describe('weir top', () => {
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

  test('names the domains if there are several', async () => {
    const [port] = ports as [FakeDebugPort];
    port.answer = () => ({
      body: answerOf(bucket('acme', 1e15, 1), bucket('b', 1, 2, { domain: 'other' })),
    });
    const { out } = await topCommand('--address', port.address);
    expect(out.split('\n').slice(4)).toEqual([
      '1000000000000000     1       50%  open-api: tenant  tenant=acme',
      '               1     2       50%  other: tenant     tenant=b',
      '',
    ]);
  });

  test('--watch prints the table again, and goes on after an error', async () => {
    const [port] = ports as [FakeDebugPort];
    let asked = 0;
    port.answer = () =>
      ++asked === 2 ? { status: 500, body: { error: 'busy' } } : { body: answerOf(bucket('acme', asked, 1)) };
    const isRead = (out: string): boolean => out.split('DENIED').length < 3;
    const words = ['--watch', '--address', port.address];
    const { code, out, err } = await outputOf('top', runTop, words, {}, isRead);
    expect([code, err]).toEqual([0, `weir top: http://${port.address}: busy\n`]);
    const tables = out.split(/^\d\d:\d\d:\d\d\n/m).slice(1);
    expect(tables).toEqual(
      [1, 3].map((denied) => expect.stringMatching(`^most denied [\\s\\S]* ${denied} +1 `)),
    );
    const json = await outputOf('top', runTop, [...words, '--json'], {}, (text) => text === '');
    expect(json.out.split('\n')).toEqual([expect.stringMatching(/^\{.*\}$/), '']);
    port.answer = () => ({ status: 403, body: { error: 'not from here' } });
    expect(await topCommand(...words)).toMatchObject({ code: 1, out: '' });
  });

  test('shows the errors of the numbers', async () => {
    const [port] = ports as [FakeDebugPort];
    const exact = { ...answerOf(), error: { denied: 0, used: 0 } };
    port.answer = () => ({ body: exact });
    expect((await topCommand('--address', port.address)).out).toContain('\nexact numbers\n');
    port.answer = () => ({ body: { ...exact, sampled: 8 } });
    const sampled = (await topCommand('--address', port.address)).out;
    expect(sampled).toContain('\nestimated from 1 in 8 decisions\n');
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
    ['--every 1s', '--every: use --watch, which prints the table every two seconds'],
    ['--once', '--once: weir top prints the table once unless --watch is set'],
    ['--all a:1 --address b:1', 'remove --address'],
    ['--all a', '"a" is not of the form host:port'],
    ['--all dns:a', '"a" is not of the form host:port'],
    ['--rul r', 'did you mean --rule'],
  ])('%s is invalid', async (line, sentence) => {
    const { code, out, err } = await topCommand(...line.split(' '));
    expect([code, out, err]).toEqual([2, '', expect.stringContaining(sentence)]);
  });
});

describe('replicas', () => {
  test('additional spaces and commas are ignored', () => {
    expect(readReplicas(' a:1, b:2 ,', false)).toEqual(readReplicas('a:1,b:2', false));
    expect(() => readReplicas(' ,', false)).toThrow(/^--all contains no address/);
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
    expect(await findReplicas(none, 5000)).toMatchObject({
      servers: [],
      problems: [expect.stringMatching(/^the addresses of dns:nobody\.invalid cannot be found/)],
    });
    const many = readReplicas(Array.from({ length: 300 }, (_, at) => `h${at}:1`).join(','), false);
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
