import { Buffer } from 'node:buffer';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, describe, expect, test } from '@jest/globals';
import { chooseFormat } from '../../../../src/replay/log/choose-format.js';
import { DECIDED_AT, jsonFormat, REQUEST_ID } from '../../../../src/replay/log/log-format.js';
import { LogFolder, readAll, SHORT_FORMAT, START, shortLine } from '../../../support/replay/written-log.js';

const folder = new LogFolder();
afterAll(() => folder.remove());

/** Three minutes of requests in the order of their start, with unique tenants. */
const LINES = Array.from({ length: 18_000 }, (_, i) => shortLine(i * 10 + (i % 7), `t${i}`));
const TEXTS = LINES.map((_, i) => `${i * 10 + (i % 7)}: t${i}`);

const joined = (lines: readonly string[]): string => `${lines.join('\n')}\n`;

/** Returns the lines in another order, each moved by less than 30 s. */
function shuffled(lines: readonly string[]): readonly string[] {
  let state = 1;
  const keyed = lines.map((line, i) => {
    state = (state * 48_271) % 2_147_483_647;
    return { line, at: i * 10 + (state % 30_000) };
  });
  return keyed.sort((a, b) => a.at - b.at).map(({ line }) => line);
}

/** Fails with fewer words than a comparison of thousands of texts. */
function expectSame(texts: readonly string[], expected: readonly string[] = TEXTS): void {
  const at = expected.findIndex((text, i) => texts[i] !== text);
  expect({ length: texts.length, at, text: texts[at] }).toEqual({ length: expected.length, at: -1 });
}

describe('the same requests', () => {
  test('in order', async () => {
    const path = folder.write('ordered.json', joined(LINES));
    const { texts, totals, requests, formats } = await readAll([path]);
    expectSame(texts);
    const size = joined(LINES).length;
    expect(totals).toEqual({
      ...{
        lines: 18_000,
        requests: 18_000,
        late: 0,
        far: 0,
        skipped: 0,
        unreadable: [],
        incomplete: [],
        holdEnds: 0,
        seen: [2, 2, 0, 0, 0],
      },
      ...{ bytesRead: size, bytesTotal: size },
    });
    expect(requests[1]).toEqual({
      startMicros: START * 1000 + 11_000,
      precisionMicros: 1000,
      values: ['t1'],
    });
    expect(formats).toEqual(['the short format']);
  });

  test('shuffled within 30 s', async () => {
    const { texts, totals } = await readAll([folder.write('shuffled.json', joined(shuffled(LINES)))]);
    expectSame(texts);
    expect(totals.late).toBe(0);
  });

  test('in several files that overlap, in any order, compressed or not', async () => {
    const parts = [0, 1, 2].map((part) => joined(shuffled(LINES.filter((_, i) => i % 3 === part))));
    const [a = '', b = '', c = ''] = parts;
    const paths = [
      folder.write('b.gz', Buffer.concat([gzipSync(b.slice(0, 1000)), gzipSync(b.slice(1000))])),
      folder.write('c.zst', zstdCompressSync(c)),
      folder.write('a.json', a),
    ];
    const { texts, totals } = await readAll(paths);
    expectSame(texts);
    expect(totals.late).toBe(0);
    expect(totals.bytesRead).toBe(totals.bytesTotal);
  });

  test('in files that follow each other', async () => {
    const paths = [2, 1, 0].map((part) =>
      folder.write(`access.log.${part}`, joined(LINES.slice(part * 6000, (part + 1) * 6000))),
    );
    expectSame((await readAll(paths)).texts);
  });

  test('with CRLF, empty lines, a byte-order mark, and no line feed at the end', async () => {
    const text = `\ufeff\r\n${LINES.join('\r\n\r\n')}`;
    const { texts, totals } = await readAll([folder.write('windows.json', text)]);
    expectSame(texts);
    expect(totals.lines).toBe(18_000);
  });

  test('cut in the middle of lines', async () => {
    const text = joined(LINES).slice(20, -20);
    const { texts, totals } = await readAll([folder.write('cut.json', text)]);
    expectSame(texts, TEXTS.slice(1, -1));
    expect(totals.unreadable).toEqual([
      {
        reason: 'is not JSON',
        lines: 2,
        example: expect.stringMatching(/cut\.json:1: :00.*"tenant":"t0"\}$/),
      },
    ]);
  });

  test('with the time of the decision, and else with slack', async () => {
    const operator = DECIDED_AT;
    const { syntax } = SHORT_FORMAT;
    const members =
      syntax.kind === 'json' ? [...syntax.members, { path: ['decided'], operators: [operator] }] : [];
    const format = {
      title: 'f',
      operators: new Set(['START_TIME', operator]),
      syntax: { kind: 'json', members },
    } as const;
    const decided = (value: string) => `${shortLine(5, 'a').slice(0, -1)},"decided":${value}}`;
    const values = ['"2026-11-26T08:00:00.004321Z"', '"2026-11-26T08:00:00.004322Z"', '"-"', 'null'];
    const path = folder.write('decided.json', joined(values.map(decided)));
    const { requests } = await readAll([path], { formats: [format], slackMicros: 500 });
    expect(
      requests.map(({ startMicros, precisionMicros }) => [startMicros - START * 1000, precisionMicros]),
    ).toEqual([
      [4321, 1],
      [4322, 1],
      [5000, 1500],
      [5000, 1500],
    ]);
  });
});

test('a sample by request IDs is recognised', async () => {
  const members = [['at'], ['tenant'], ['id']].map((path, i) => ({
    path,
    operators: [['START_TIME', 'REQ(x-tenant)', REQUEST_ID][i] as string],
  }));
  const lines = LINES.map((line, i) => {
    const number = (i * 2_654_435_761) % 2 ** 32;
    const id = `${number.toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`;
    return { number, line: `${line.slice(0, -1)},"id":"${id}"}` };
  });
  const read = async (share: number) => {
    const kept = lines.filter(({ number }) => number % 100 < share).map(({ line }) => line);
    return readAll([folder.write('ids.json', joined(kept))], { formats: [jsonFormat('ids', members)] });
  };
  expect((await read(100)).totals.incomplete).toEqual([]);
  expect((await read(10)).totals.incomplete).toEqual([
    { kind: 'request_ids', share: 0.1, reason: expect.stringMatching(/a sample of about 10%/) },
  ]);
});

describe('late requests', () => {
  test('are handed out on arrival, and counted', async () => {
    const lines = [...LINES.slice(100), ...LINES.slice(0, 50)];
    const { texts, totals } = await readAll([folder.write('late.json', joined(lines))]);
    expect(totals.late).toBe(50);
    expect([...texts].sort()).toEqual([...TEXTS.slice(100), ...TEXTS.slice(0, 50)].sort());
  });

  test('are sorted within a larger window', async () => {
    const lines = [...LINES.slice(100), ...LINES.slice(0, 50)];
    const path = folder.write('window.json', joined(lines));
    const { texts, totals } = await readAll([path], { windowMicros: 300_000_000 });
    expect(totals.late).toBe(0);
    expectSame(texts, [...TEXTS.slice(0, 50), ...TEXTS.slice(100)]);
  });

  test('a line of the year 2099 does not make others late', async () => {
    const wrong = LINES[0]?.replace('2026', '2099') as string;
    const { texts, totals } = await readAll([folder.write('2099.json', joined([wrong, ...LINES, wrong]))]);
    expect(totals).toMatchObject({ late: 0, far: 2, incomplete: [] });
    expectSame(texts.slice(0, -2));
    expect(texts.slice(-2)).toEqual(['179992: t0', '179992: t0']);
  });
});

describe('lines that cannot be read', () => {
  test('are counted by reason with one example, without secrets', async () => {
    const bad = [
      '[1]',
      '{"at":"yesterday","tenant":"a"}',
      '{"tenant":"a"}',
      `[info] x-api-key: sk-12345 Bearer ${'a1b2'.repeat(10)} ${'long '.repeat(100)}`,
      '[info] \u202e',
    ];
    const { totals } = await readAll([folder.write('bad.json', joined([...LINES.slice(0, 200), ...bad]))], {
      maxUnreadable: 0.1,
    });
    const at = (line: number, text: string) => `${join(folder.path, 'bad.json')}:${line}: ${text}`;
    const [, , third] = totals.unreadable;
    expect(totals.unreadable.map(({ reason, lines }) => [reason, lines])).toEqual([
      ['has no time that can be read', 2],
      ['is not JSON', 2],
      ['is not a JSON object', 1],
    ]);
    expect(third?.example).toBe(at(201, '[1]'));
    const [, second] = totals.unreadable;
    expect(second?.example).toMatch(/:204: \[info\] x-api-key: \[redacted\] Bearer \[redacted\] long .*…$/);
    expect(second?.example.length).toBeLessThanOrEqual(at(204, '').length + 120);
  });

  test('are too many above a share, but not before 1,000 lines', async () => {
    const bad = (count: number) => Array.from({ length: count }, () => 'x');
    const few = folder.write('few.json', joined([...LINES.slice(0, 90), ...bad(9), ...LINES.slice(90, 300)]));
    expect((await readAll([few])).totals.unreadable[0]?.lines).toBe(9);
    const many = folder.write('many.json', joined([...LINES.slice(0, 1000), ...bad(60)]));
    await expect(readAll([many])).rejects.toThrow(
      /^60 of the first 1060 lines cannot be read, more than 5%; .*\n {2}60 lines: it is not JSON, as in .*:1001: x$/,
    );
    expect((await readAll([many], { maxUnreadable: 0.06 })).totals.requests).toBe(1000);
  });

  test('are those that are too long', async () => {
    const long = `{"at":"${'x'.repeat(3_000_000)}"}`;
    const path = folder.write('long.json', joined([...LINES.slice(0, 200), long, ...LINES.slice(200)]));
    const { texts, totals } = await readAll([path]);
    expectSame(texts);
    expect(totals.unreadable).toEqual([
      { reason: 'is longer than 1 MiB', lines: 1, example: `${path}:201: ` },
    ]);
  });
});

describe('a log that cannot be read', () => {
  test.each(['gzip', 'zstd'])('a damaged archive of %s', async (kind) => {
    const compress = kind === 'gzip' ? gzipSync : zstdCompressSync;
    const random = LINES.map(
      (line, i) => `${line.slice(0, -1)},"x":"${((i * 7919) % 104_729).toString(36)}"}`,
    );
    const whole = compress(joined(random));
    const path = folder.write(`cut.${kind}`, whole.subarray(0, whole.length >> 1));
    await expect(readAll([path])).rejects.toThrow(
      new RegExp(
        `cut\\.${kind}: the archive is damaged after \\d+ lines \\(\\d+ of ${whole.length >> 1} bytes\\): .*`,
      ),
    );
    const flipped = Buffer.from(whole);
    flipped.fill(0x55, whole.length - 8);
    await expect(readAll([folder.write(`flipped.${kind}`, flipped)])).rejects.toThrow(
      /the archive is damaged/,
    );
  });

  test('missing files, directories, empty files, and other texts', async () => {
    const good = folder.write('good.json', joined(LINES.slice(0, 10)));
    const empty = folder.write('empty.json', '\n\n');
    mkdirSync(join(folder.path, 'logs'));
    await expect(readAll([good, `${good}x`])).rejects.toThrow(/good\.jsonx" does not exist; check the path$/);
    await expect(readAll([join(folder.path, 'logs')])).rejects.toThrow(/logs is a directory; pass its files/);
    await expect(readAll([empty])).rejects.toThrow(/empty\.json: the log has no lines$/);
    expect((await readAll([empty, good])).totals.requests).toBe(10);
    const utf16 = folder.write('utf16.json', Buffer.from(`\ufeff${LINES[0]}`, 'utf16le'));
    await expect(readAll([utf16])).rejects.toThrow(/is UTF-16; convert it to UTF-8/);
    await expect(readAll(Array.from({ length: 501 }, () => good))).rejects.toThrow(
      /501 files, more than .* 500/,
    );
  });
});

test('values keep their texts', async () => {
  const tenants = ['', 'é ü', '日本', '😀', 'a"b\\c', 'tab\there', '\u0001x', 'null', '-x'];
  const lines = tenants.map((tenant, i) => shortLine(i, tenant));
  const path = folder.write(
    'texts.json',
    joined([...lines, shortLine(9, '-'), '{"at":"2026-11-26T08:00:01Z"}']),
  );
  const { requests } = await readAll([path]);
  expect(requests.map(({ values }) => values[0])).toEqual([...tenants, undefined, undefined]);
});

test('of several JSON formats that fit, the one that knows most members is chosen', () => {
  const few = jsonFormat('few', [{ path: ['t'], operators: ['START_TIME'] }]);
  const all = jsonFormat('all', [
    { path: ['t'], operators: ['START_TIME'] },
    { path: ['tenant'], operators: ['REQ(x-tenant)'] },
  ]);
  const lines = ['{"t":"2026-11-26T08:00:00Z","tenant":"acme"}'];
  expect(chooseFormat(lines, [few, all], true)?.title).toBe('all');
  expect(chooseFormat(['{"t":"2026-11-26T08:00:00Z"}'], [few, all], true)?.title).toBe('few');
});
