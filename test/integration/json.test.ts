/* Tests `/json`, which is ShouldRateLimit for callers without gRPC, from outside. */
import { request } from 'node:http';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { freePorts } from '../support/process/free-port.js';
import { type HttpAnswer, httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const POLICY = `
domain: d
descriptors:
  - { key: two, rate_limit: { name: two, unit: day, requests_per_unit: 2 } }
  - { key: told, rate_limit: { unit: day, requests_per_unit: 0, denied_response: { body: "nö", content_type: text/html } } }
  - { key: many, rate_limit: { unit: day, requests_per_unit: 1000000 } }
`;
const asking = (key: string, more = {}) => ({
  domain: 'd',
  descriptors: [{ entries: [{ key, value: 'x' }], ...more }],
});
const post = (server: WeirServer, body: unknown, headers = {}): Promise<HttpAnswer> =>
  httpRequest(server.httpPort, '/json', {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    headers,
  });
const header = (answer: HttpAnswer, name: string) => answer.headers.find(([other]) => other === name)?.[1];

/** Returns the numbers of calls and of bad requests in the metrics. */
async function counted(server: WeirServer): Promise<{ readonly calls: number; readonly refused: number }> {
  const { body } = await httpRequest(server.httpPort, '/metrics');
  const value = (series: string): number =>
    Number(
      body
        .split('\n')
        .find((line) => line.startsWith(`${series} `))
        ?.slice(series.length) ?? 0,
    );
  return {
    calls: value('weir_request_duration_seconds_count'),
    refused: value('weir_refused_total{code="INVALID_ARGUMENT"}'),
  };
}

describe('with buckets in memory', () => {
  let server: WeirServer;
  beforeAll(async () => {
    server = await startWeir({ policy: POLICY });
  });

  test('encodes a denied_response body in base64, as protobuf JSON requires', async () => {
    const { body } = await post(server, asking('told'));
    expect(JSON.parse(body)).toMatchObject({
      responseHeadersToAdd: [{ key: 'content-type', value: 'text/html' }],
      rawBody: Buffer.from('nö').toString('base64'),
    });
  });

  test.each([
    ['no body', '', /\S/],
    ['no JSON', '}', /JSON/],
    ['an unknown field', '{"domian":"d"}', /"domian" is unknown/],
    ['no domain', '{}', /rate limit domain must not be empty/],
    ['no descriptors', '{"domain":"d"}', /rate limit descriptor list must not be empty/],
    ['a bad unit', JSON.stringify(asking('two', { limit: { unit: 99 } })), /limit\.unit must be one of/],
  ])('answers 400 for %s, with the reason in the body and in a header', async (_name, body, reason) => {
    const answer = await post(server, body);
    const told = header(answer, 'x-weir-reason');
    expect(told).toMatch(reason);
    expect([answer.status, answer.body]).toEqual([400, `Bad Request\n${told}\n`]);
    expect(header(answer, 'content-type')).toBe('text/plain; charset=utf-8');
  });

  test('answers 400 for a malformed grpc-timeout', async () => {
    expect((await post(server, asking('many'), { 'grpc-timeout': 'soon' })).status).toBe(400);
    expect((await post(server, asking('many'), { 'grpc-timeout': '1S' })).status).toBe(200);
  });

  test('answers 413 for a body above the bound, with or without content-length', async () => {
    const exact = JSON.stringify(asking('many')).padEnd(65_536);
    expect((await post(server, exact)).status).toBe(200);
    expect((await post(server, exact, { 'transfer-encoding': 'chunked' })).status).toBe(200);
    for (const headers of [{}, { 'transfer-encoding': 'chunked' }]) {
      const answer = await post(server, `${exact} `, headers);
      const reason = 'the body is longer than 65536 bytes (MAX_REQUEST_BYTES)';
      expect([answer.status, header(answer, 'x-weir-reason')]).toEqual([413, reason]);
    }
  });

  test('measures every call, and counts each refused one, including malformed bodies', async () => {
    const before = await counted(server);
    await post(server, asking('many'));
    for (const body of ['}', '{"domain":"d","domain":"d"}', '{"domain":"d"}']) await post(server, body);
    await post(server, asking('many'), { 'grpc-timeout': 'soon' });
    const after = await counted(server);
    expect([after.calls - before.calls, after.refused - before.refused]).toEqual([5, 4]);
  });
});

describe('expensive bodies', () => {
  let server: WeirServer;
  beforeAll(async () => {
    server = await startWeir({ policy: POLICY, env: { MAX_DESCRIPTORS: '128' } });
  });

  const filled = (start: string, unit: string, end: string): string =>
    start + unit.repeat(Math.floor((65_536 - start.length - end.length) / unit.length)) + end;

  test.each([
    ['nested lists', filled('{"domain":', '[', ''), /more than 16 levels of nesting/],
    ['lists', filled('{"domain":[[', '[],', '[]]]}'), /expected string, got Array/],
    [
      'the same member again and again',
      filled('{', '"domain":1,', '"domain":"d"}'),
      /duplicate object key "domain"/,
    ],
    ['a long number', filled('{"hitsAddend":', '9', '}'), /expected number \(uint32\)/],
    ['a long name', filled('{"', 'x', '":1}'), /key "xxx/],
    ['a long text that ends too early', filled('{"domain":"', '\\u00fc', ''), /Unterminated string/],
    ['nothing but spaces', filled('', ' ', ''), /JSON/],
  ])('%s are refused with a reason, and the next call is answered', async (_name, body, reason) => {
    const [answer, next] = await Promise.all([post(server, body), post(server, asking('many'))]);
    expect([answer.status, header(answer, 'x-weir-reason')]).toEqual([400, expect.stringMatching(reason)]);
    expect(next.status).toBe(200);
  });

  test('a small request in a body of the maximum length is decided', async () => {
    const start = '{"domain":"d","descriptors":[{"entries":[{"key":"many","value":"';
    expect((await post(server, filled(start, '\\u00fc\\n', '"}]}]}'))).status).toBe(200);
  });

  test('the maximum number of descriptors is decided and returned', async () => {
    const { status, body } = await post(server, {
      domain: 'd',
      descriptors: Array(128).fill(asking('many').descriptors[0]),
    });
    expect(status).toBe(200);
    expect((JSON.parse(body) as { statuses: unknown[] }).statuses).toHaveLength(128);
  });
});

/** Stops `server` during a call whose body is not complete. */
async function endDuringCall(server: WeirServer): Promise<void> {
  const answered = new Promise<number | undefined>((resolve, reject) => {
    const headers = { expect: '100-continue' };
    const outgoing = request(
      { host: '127.0.0.1', port: server.httpPort, path: '/json', method: 'POST', headers },
      (incoming) => {
        incoming.resume();
        incoming.once('end', () => resolve(incoming.statusCode));
      },
    );
    outgoing.once('error', reject);
    outgoing.once('continue', async () => {
      // The server has received the head of the request.
      server.process.signal('SIGTERM');
      await waitFor('draining', () => server.log().some(({ msg }) => msg === 'draining') || undefined);
      await waitFor('refusals', async () => (await post(server, asking('many'))).status === 503 || undefined);
      expect((await httpRequest(server.httpPort, '/healthcheck')).status).toBe(500);
      outgoing.end(JSON.stringify(asking('many')));
    });
    outgoing.flushHeaders();
  });
  expect(await answered).toBe(200);
  expect(await server.process.exited).toEqual({ code: 0, signal: null });
}

const ENDING = 'current calls are answered when the server ends, and further calls are refused';

test(ENDING, async () => endDuringCall(await startWeir({ policy: POLICY })));

describe('with Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });

  test('answers 503 without Redis', async () => {
    const [port] = await freePorts(1);
    const env = { REDIS_URL: `127.0.0.1:${port}` };
    const server = await startWeir({ policy: POLICY, env, untilHealthy: false });
    const answer = await waitFor('an answer', () => post(server, asking('two')));
    expect([answer.status, answer.body]).toEqual([
      503,
      'Service Unavailable\nrate limit store unavailable\n',
    ]);
    expect(header(answer, 'x-weir-reason')).toBe('rate limit store unavailable');
  });

  test('a grpc-timeout bounds the wait for a Redis that hangs', async () => {
    const env = { REDIS_URL: `127.0.0.1:${redis.port}`, REDIS_TIMEOUT: '1h' };
    const server = await startWeir({ policy: POLICY, env });
    expect((await post(server, asking('many'))).status).toBe(200);
    redis.pause();
    try {
      expect((await post(server, asking('many'), { 'grpc-timeout': '200m' })).status).toBe(503);
    } finally {
      redis.resume();
    }
  });

  test(`several workers decide together; ${ENDING}`, async () => {
    const env = { REDIS_URL: `127.0.0.1:${redis.port}`, WORKERS: '2' };
    const server = await startWeir({ policy: POLICY, env });
    const together = asking('two', { entries: [{ key: 'two', value: 'workers' }] });
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(server, together)));
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([200, 200, ...Array.from({ length: 18 }, () => 429)]);
    expect((await post(server, { domain: 'd' })).status).toBe(400);
    expect((await post(server, asking('many'), { 'grpc-timeout': '5S' })).status).toBe(200);
    expect((await post(server, '}')).status).toBe(400);
    expect(await counted(server)).toEqual({ calls: 23, refused: 2 });
    await endDuringCall(server);
  });
});
