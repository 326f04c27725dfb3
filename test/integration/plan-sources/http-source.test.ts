/* Tables of plans over HTTP: an honest server, and one that lies. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { HttpPlanSource } from '../../../src/config/sources/http-source.js';
import { PlanMirror } from '../../../src/config/sources/plan-mirror.js';
import { type SourceFailure, storedFileOf } from '../../../src/config/sources/plan-source.js';
import { TableServer } from '../../support/plans/table-server.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { waitFor } from '../../support/process/wait-for.js';

const TABLE = 'tenant,burst\nacme,10\n';
const MAX_BYTES = 128 * 1024 * 1024;
const NEVER = new AbortController().signal;

let server: TableServer;
let dir: TempDir;

beforeEach(async () => {
  server = await TableServer.start(TABLE);
  dir = new TempDir();
});
afterEach(async () => {
  await server.stop();
  dir.remove();
});

function mirror({
  path = '/plans.csv',
  token = '',
  answerMs = 10_000,
  cache = dir.join('cache'),
} = {}): PlanMirror {
  const address = server.origin + path;
  return new PlanMirror(address, new HttpPlanSource(address, token), cache, answerMs);
}
const fileOf = (path = '/plans.csv'): string => dir.join(`cache/${storedFileOf(server.origin + path)}`);
const stored = (): string => readFileSync(fileOf(), 'utf8');

test('stores the rows, and again only if they changed', async () => {
  const rows = mirror();
  expect(await rows.update(NEVER)).toBe('changed');
  expect(stored()).toBe(TABLE);
  expect(await rows.update(NEVER)).toBe('unchanged');
  server.table = 'tenant,burst\nacme,100\n';
  expect(await rows.update(NEVER)).toBe('changed');
  expect(stored()).toBe(server.table);
});

test('rows without an ETag that did not change are not written', async () => {
  expect(await mirror().update(NEVER)).toBe('changed');
  const before = statSync(dir.join('cache'));
  const rows = mirror();
  for (let i = 0; i < 2; i++) expect(await rows.update(NEVER)).toBe('unchanged');
  const after = statSync(dir.join('cache'));
  expect([after.mtimeMs, after.ctimeMs]).toEqual([before.mtimeMs, before.ctimeMs]);
});

test('large rows are stored, and again only if they changed', async () => {
  server.table = `${TABLE}${'other,5\n'.repeat(200_000)}`;
  const rows = mirror();
  expect(await rows.update(NEVER)).toBe('changed');
  expect(stored()).toBe(server.table);
  expect(await rows.update(NEVER)).toBe('unchanged');
  server.table += 'last,6\n';
  expect(await rows.update(NEVER)).toBe('changed');
  expect(stored()).toBe(server.table);
  expect(readdirSync(dir.join('cache'))).toHaveLength(1);
});

test('asks with the ETag of the stored rows', async () => {
  server.etag = '"1"';
  const rows = mirror();
  await rows.update(NEVER);
  expect(await rows.update(NEVER)).toBe('unchanged');
  expect(server.unchanged).toBe(1);
  // Without the file, weir needs all rows.
  dir.remove();
  expect(await rows.update(NEVER)).toBe('changed');
  expect(stored()).toBe(TABLE);
});

test('sends the token of the file, and not to another origin', async () => {
  const other = await TableServer.start(TABLE);
  try {
    const token = dir.write('token', 'secret\n');
    server.answer = (request, response) => {
      if (request.url === '/plans.csv') response.writeHead(302, { location: `${other.origin}/moved` }).end();
    };
    expect(await mirror({ token }).update(NEVER)).toBe('changed');
    expect(server.requests[0]?.headers.authorization).toBe('Bearer secret');
    expect(other.requests[0]?.headers.authorization).toBeUndefined();
    expect(await mirror({ token: dir.join('none') }).update(NEVER)).toEqual({
      kind: 'failed',
      reason: 'login',
      message: expect.stringContaining('PLANS_TOKEN_PATH'),
    });
  } finally {
    await other.stop();
  }
});

test.each([
  ['nothing', '\n'],
  ['two lines', 'secret\nother\n'],
  ['a curly quote', 'secret\u2019'],
  ['a scheme', 'Bearer secret'],
])('a token file with %s sends no request, and the message does not contain it', async (_what, content) => {
  const rows = mirror({ token: dir.write('token', content) });
  const failed = (await rows.update(NEVER)) as SourceFailure;
  expect(failed.reason).toBe('login');
  expect(failed.message).toContain('PLANS_TOKEN_PATH');
  expect(failed.message).not.toContain('secret');
  expect(server.requests).toEqual([]);
});

test('does not send a long ETag, which the server may refuse', async () => {
  server.etag = `"${'x'.repeat(10_000)}"`;
  const rows = mirror();
  await rows.update(NEVER);
  expect(await rows.update(NEVER)).toBe('unchanged');
  expect(server.requests[1]?.headers['if-none-match']).toBeUndefined();
});

test('names the errors of all addresses of a host', () => {
  const all = new AggregateError([
    new Error('connect ECONNREFUSED ::1:80'),
    new Error('connect ENETUNREACH'),
  ]);
  expect(new HttpPlanSource('', '').failureOf(new TypeError('fetch failed', { cause: all })).message).toBe(
    'connect ECONNREFUSED ::1:80, connect ENETUNREACH',
  );
});

test('processes with the same directory do not replace equal rows in turn', async () => {
  server.etag = '"1"';
  const [one, other] = [mirror(), mirror()];
  expect(await one.update(NEVER)).toBe('changed');
  const { ino } = statSync(fileOf());
  expect(await other.update(NEVER)).toBe('unchanged');
  expect(await one.update(NEVER)).toBe('unchanged');
  expect(await other.update(NEVER)).toBe('unchanged');
  expect(statSync(fileOf()).ino).toBe(ino);
  expect(server.unchanged).toBe(2);
});

test('processes that write at the same time do not write into the file of the other', async () => {
  // Smaller rows are not written before they are complete.
  const head = `tenant,burst\n${'#\n'.repeat(600_000)}`;
  const responses: ServerResponse[] = [];
  server.answer = (_request, response) => {
    responses.push(response.writeHead(200));
    response.write(head);
  };
  const results = [mirror().update(NEVER), mirror().update(NEVER)];
  await waitFor('both files', () => readdirSync(dir.join('cache')).length === 2);
  responses.forEach((response, at) => {
    response.end(`acme,${at + 1}0\n`);
  });
  expect(await Promise.all(results)).toEqual(['changed', 'changed']);
  expect(readdirSync(dir.join('cache'))).toHaveLength(1);
  expect(stored().slice(0, head.length)).toBe(head);
  expect(stored().slice(head.length)).toMatch(/^acme,[12]0\n$/);
});

type Lie = readonly [
  what: string,
  reason: string,
  message: string,
  answer: (response: ServerResponse, path: string) => void,
];

test.each<Lie>([
  ['an empty 200', 'content', 'the answer is empty', (response) => response.end()],
  [
    'a page for people',
    'content',
    'the response is an HTML page, and not a table',
    (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>log in</html>'),
  ],
  [
    'a 401',
    'status',
    'the server answers with status 401; check the token in PLANS_TOKEN_PATH',
    (response) => response.writeHead(401).end(),
  ],
  ['a 503', 'status', 'the server answers with status 503', (response) => response.writeHead(503).end('no')],
  [
    'a 304 without an ETag',
    'status',
    'the server answers with status 304 to a request without an ETag',
    (response) => response.writeHead(304).end(),
  ],
  [
    'a redirect to itself',
    'connection',
    'redirect count exceeded',
    (response, path) => response.writeHead(302, { location: path }).end(),
  ],
  [
    'less than content-length',
    'transfer',
    'other side closed',
    (response) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write('tenant,burst\nacme,10\n', () => response.destroy());
    },
  ],
  [
    'damaged gzip',
    'transfer',
    'incorrect header check',
    (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('tenant,burst\n'),
  ],
  [
    'a gzip bomb',
    'too_large',
    'the answer has more than 128 MiB',
    (response) =>
      response
        .writeHead(200, { 'content-encoding': 'gzip' })
        .end(gzipSync(Buffer.alloc(MAX_BYTES + 1), { level: 1 })),
  ],
])('%s changes nothing', async (_what, reason, message, lie) => {
  const rows = mirror();
  await rows.update(NEVER);
  server.answer = (request, response) => lie(response, request.url ?? '');
  expect(await rows.update(NEVER)).toEqual({ kind: 'failed', reason, message });
  expect(stored()).toBe(TABLE);
  server.answer = (request, response) => server.honest(request, response);
  expect(await rows.update(NEVER)).toBe('unchanged');
});

test('an answer that is never complete ends after the longest time', async () => {
  server.answer = (_request, response) => {
    response.writeHead(200);
    response.write('tenant,burst\n');
  };
  expect(await mirror({ answerMs: 200 }).update(NEVER)).toEqual({
    kind: 'failed',
    reason: 'timeout',
    message: 'the answer was not complete after 0.2 s',
  });
  expect(existsSync(fileOf())).toBe(false);
});

test('a directory that cannot be created ends the attempt', async () => {
  expect(await mirror({ cache: '/proc/none/cache' }).update(NEVER)).toEqual({
    kind: 'failed',
    reason: 'disk',
    message: expect.stringMatching(/"\/proc\/none\/cache" \(ENOENT\)/),
  });
});

test('without a server, and without a directory, nothing changes', async () => {
  dir.write('cache', 'a file');
  expect(await mirror().update(NEVER)).toMatchObject({ kind: 'failed', reason: 'disk' });
  const gone = mirror();
  await server.stop();
  expect(await gone.update(NEVER)).toMatchObject({ kind: 'failed', reason: 'connection' });
  server = await TableServer.start();
});
