import type { OutgoingHttpHeaders } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  type AdminRight,
  adminEndpoint,
  DebugPortAccess,
  MAX_QUESTION_BYTES,
} from '../../../src/admin/admin-access.js';
import { findAdminToken, newAdminToken, readAdminTokens } from '../../../src/admin/admin-tokens.js';
import { type HttpListener, listenHttp } from '../../../src/http/http.js';
import type { Logger } from '../../../src/telemetry/logger.js';
import { httpRequest } from '../../support/process/http-client.js';
import { CertificateAuthority } from '../../support/tls/certificates.js';

let listener: HttpListener;
let questions: unknown[];
let counted: string[];
let logged: unknown[];
let nowMicros: number;

async function open(debugHost: string, lines?: string, authority?: CertificateAuthority): Promise<void> {
  const tokens = readAdminTokens(lines ?? '#');
  if (typeof tokens === 'string') throw new Error(tokens);
  const material = authority && { ...authority.issue('DNS:weir.example'), clientCa: undefined };
  const access = new DebugPortAccess({
    debugHost,
    tls: material !== undefined,
    tokens: lines === undefined ? undefined : { find: (sent) => findAdminToken(tokens, sent) },
    log: { warn: (about: unknown) => logged.push(about) } as unknown as Logger,
    count: (action, result) => counted.push(`${action} ${result}`),
    monotonicMicros: () => nowMicros,
  });
  const service = {
    path: '/ask',
    help: 'answers',
    rightFor: (question: unknown): AdminRight => (question === 'read' ? 'read' : 'write'),
    answer: (question: unknown, { by, peer }: { by: string; peer: string }) => {
      questions.push(question);
      if (question === 'throw') throw new Error('broken');
      return { status: 200, body: { by, peer, list: [1, { a: 'b' }] } };
    },
  };
  listener = await listenHttp('127.0.0.1', 0, {
    endpoints: [adminEndpoint(service, access)],
    ...(material && { tls: { options: { material, clientSan: undefined }, follow: () => {} } }),
    onError: () => {},
  });
}

beforeEach(() => {
  questions = [];
  counted = [];
  logged = [];
  nowMicros = 0;
});
afterEach(() => listener.close());

function ask(
  headers: OutgoingHttpHeaders = {},
  body: string | Buffer = '{"action":"show"}',
  method = 'POST',
  path = '/ask',
) {
  return httpRequest(listener.port, path, {
    method,
    body,
    headers: { 'content-type': 'application/json', ...headers },
  });
}

describe('on loopback', () => {
  beforeEach(() => open('127.0.0.1'));

  test('a request is answered, and the answer may not be cached', async () => {
    const { status, body, headers } = await ask();
    expect([status, JSON.parse(body)]).toEqual([
      200,
      { by: 'loopback', peer: '127.0.0.1', list: [1, { a: 'b' }] },
    ]);
    expect(headers).toContainEqual(['cache-control', 'no-store']);
    expect([questions, counted, logged]).toEqual([[{ action: 'show' }], [], []]);
  });

  const own: [string, OutgoingHttpHeaders][] = [
    ['localhost', { host: 'localhost' }],
    ['IPv6', { host: '[::1]:6070' }],
    ['another loopback address', { host: '127.8.8.8:1' }],
    [
      'its own origin',
      { host: 'localhost:1', origin: 'http://localhost:1', 'sec-fetch-site': 'same-origin' },
    ],
    ['UTF-8', { 'content-type': 'application/json; charset=UTF-8' }],
  ];
  test.each(own)('accepts %s', async (_, headers) => {
    expect((await ask(headers)).status).toBe(200);
  });

  const foreign: [string, number, OutgoingHttpHeaders][] = [
    ['a rebound name', 421, { host: 'evil.example:6070' }],
    ['a rebound name with its origin', 421, { host: 'evil.example', origin: 'http://evil.example' }],
    ['a name that begins as loopback does', 421, { host: '127.0.0.1.evil.example' }],
    ['a name that ends as loopback does', 421, { host: 'evil.localhost' }],
    ['a user before the name', 421, { host: 'localhost@evil.example' }],
    ['no name', 421, { host: ':6070' }],
    ['another origin', 403, { host: 'localhost:6070', origin: 'http://evil.example' }],
    ['another port', 403, { host: 'localhost:6070', origin: 'http://localhost:3000' }],
    ['another scheme', 403, { host: 'localhost:6070', origin: 'https://localhost:6070' }],
    ['an origin that is kept secret', 403, { origin: 'null' }],
    ['a page of another site', 403, { 'sec-fetch-site': 'cross-site' }],
    ['a page of a sibling', 403, { 'sec-fetch-site': 'same-site' }],
    ['a proxy', 403, { 'x-forwarded-for': '10.0.0.1' }],
    ['a sidecar', 403, { 'x-envoy-attempt-count': '1' }],
    ['a proxy of RFC 7239', 403, { forwarded: 'for=10.0.0.1' }],
  ];
  test.each(foreign)('refuses %s', async (_, status, headers) => {
    const answer = await ask(headers);
    expect([answer.status, questions, counted]).toEqual([status, [], ['access refused']]);
    expect(JSON.parse(answer.body)).toEqual({ error: expect.stringMatching(/^.{20}/) });
    expect(answer.headers.map(([name]) => name).filter((name) => name.startsWith('access-control'))).toEqual(
      [],
    );
  });

  test('refuses a call with two Host headers, because a proxy may have checked the other one', async () => {
    const headers = ['host', 'localhost', 'host', 'evil.example', 'content-type', 'application/json'];
    const all = [...headers, 'content-length', '2'] as unknown as OutgoingHttpHeaders;
    const { status, body } = await httpRequest(listener.port, '/ask', {
      method: 'POST',
      headers: all,
      body: '{}',
    });
    expect([status, JSON.parse(body), questions]).toEqual([
      400,
      { error: 'the request has 2 Host headers; send exactly one' },
      [],
    ]);
  });

  const malformed: [string, number, Parameters<typeof ask>][] = [
    ['a form', 415, [{ 'content-type': 'text/plain' }]],
    ['no type', 415, [{ 'content-type': '' }]],
    ['another charset', 415, [{ 'content-type': 'application/json; charset=utf-7' }]],
    ['GET', 405, [{}, '', 'GET']],
    ['a preflight', 405, [{ 'access-control-request-method': 'POST' }, '', 'OPTIONS']],
    ['an identity in the URL', 400, [{}, '{}', 'POST', '/ask?tenant=acme']],
    ['bytes that are no UTF-8', 400, [{}, Buffer.from('"a\xff"', 'latin1')]],
    ['no JSON', 400, [{}, '{']],
    ['an empty body', 400, [{}, '']],
    ['a body that is too long', 413, [{}, ' '.repeat(MAX_QUESTION_BYTES + 1)]],
    ['an answer that fails', 500, [{}, '"throw"']],
  ];
  test.each(malformed)('answers in JSON: %s', async (_, status, args) => {
    const answer = await ask(...args);
    expect([answer.status, JSON.parse(answer.body)]).toEqual([status, { error: expect.any(String) }]);
    expect(counted).toEqual([]);
  });

  test('logs refusals once in ten seconds, with their number', async () => {
    for (let i = 0; i < 3; i++) await ask({ host: 'evil.example' });
    nowMicros = 10_000_000;
    await ask({ origin: 'null' });
    expect(logged).toEqual([
      { peer: '127.0.0.1', status: 421 },
      { peer: '127.0.0.1', status: 403, alsoRefused: 2 },
    ]);
    expect(counted).toHaveLength(4);
  });
});

test.each(['0.0.0.0', '', '::', '10.1.2.3', 'weir.example'])(
  'on %j, all administrative calls are refused',
  async (host) => {
    await open(host);
    const { status, body } = await ask({ host: 'localhost' });
    expect([status, body]).toEqual([403, expect.stringContaining('DEBUG_HOST=127.0.0.1')]);
  },
);

describe('with tokens', () => {
  const reader = newAdminToken('dashboard', 'read');
  const writer = newAdminToken('on-call', 'write');
  const lines = `${reader.line}\n${writer.line}`;
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

  const cases: [string, number, OutgoingHttpHeaders, string][] = [
    ['who may write, changes', 200, bearer(writer.token), '"change"'],
    ['who may write, reads', 200, bearer(writer.token), '"read"'],
    ['who may read, reads', 200, { authorization: `bearer  ${reader.token}` }, '"read"'],
    ['who may read, changes', 403, bearer(reader.token), '"change"'],
    ['no token', 401, {}, '"read"'],
    ['no token, on loopback', 401, { host: 'localhost' }, '"read"'],
    ['another scheme', 401, { authorization: `Basic ${writer.token}` }, '"read"'],
    ['another token', 401, bearer(newAdminToken('on-call', 'write').token), '"read"'],
    ['a part of one', 401, bearer(writer.token.slice(0, -1)), '"read"'],
    ['more than one', 401, bearer(`${writer.token}x`), '"read"'],
    ['its digest', 401, bearer(writer.line.slice(-64)), '"read"'],
    ['its line', 401, bearer(writer.line.split(' ')[2] as string), '"read"'],
    ['a short one', 401, bearer('short'), '"read"'],
    ['an enormous one', 401, bearer('x'.repeat(10_000)), '"read"'],
    ['a page of another site', 403, { ...bearer(writer.token), origin: 'http://evil.example' }, '"read"'],
    [
      'its page, where a proxy ends TLS',
      200,
      { ...bearer(writer.token), origin: 'https://weir.example' },
      '"read"',
    ],
  ];
  test.each(cases)('%s: %d', async (_, status, headers, question) => {
    await open('0.0.0.0', lines);
    const answer = await ask({ host: 'weir.example', ...headers }, question);
    expect(answer.status).toBe(status);
    expect(questions).toEqual(status === 200 ? [JSON.parse(question)] : []);
    expect(counted).toEqual(status === 200 ? [] : ['access refused']);
    const said = JSON.stringify([answer.body, answer.headers, logged]);
    expect([reader.token, writer.token, 'xxxx'].filter((token) => said.includes(token))).toEqual([]);
    expect(answer.headers.some(([name]) => name === 'www-authenticate')).toBe(status === 401);
    if (status === 200) expect(JSON.parse(answer.body).by).toMatch(/^(dashboard|on-call)$/);
  });

  test('over TLS, the origin of the page begins with https', async () => {
    const authority = new CertificateAuthority();
    await open('0.0.0.0', lines, authority);
    const over = (origin: string) =>
      httpRequest(listener.port, '/ask', {
        method: 'POST',
        ca: authority.cert,
        body: '"read"',
        headers: {
          'content-type': 'application/json',
          host: 'weir.example',
          origin,
          ...bearer(writer.token),
        },
      });
    expect((await over('https://weir.example')).status).toBe(200);
    expect((await over('http://weir.example')).status).toBe(403);
    // The TLS port does not answer plain-text HTTP.
    await expect(ask(bearer(writer.token))).rejects.toThrow();
  });
});
