/* Tests the sampled decision log (DECISION_LOG_SAMPLE) from outside. */
import { existsSync, readFileSync, renameSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { RlsClient } from '../support/grpc/rls-client.js';
import { httpRequest } from '../support/process/http-client.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { startRedis } from '../support/redis/redis-server.js';
import { startWeir } from '../support/weir/weir.js';

const POLICY = `
domain: d
descriptors:
  - { key: one, rate_limit: { unit: day, requests_per_unit: 1 } }
`;
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const TRACEPARENT = `00-${TRACE}-00f067aa0ba902b7-01`;
const descriptor = (value: string) => ({
  entries: [{ key: 'one', value }],
  limit: undefined,
  hitsAddend: undefined,
  isNegativeHits: false,
});
const json = (port: number, value: string, headers = {}) =>
  httpRequest(port, '/json', {
    method: 'POST',
    headers,
    body: JSON.stringify({ domain: 'd', descriptors: [{ entries: [{ key: 'one', value }] }] }),
  });
const linesOf = (path: string): Record<string, unknown>[] =>
  existsSync(path)
    ? readFileSync(path, 'utf8')
        .split('\n')
        .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Record<string, unknown>]))
    : [];

test('appends decisions with their traces to a file, and to a new file after a rotation', async () => {
  const directory = new TempDir();
  const path = directory.write('decisions.jsonl', '{"earlier":true}\n');
  const env = { DECISION_LOG_SAMPLE: 'denied=1,ok=1', DECISION_LOG_FILE: path };
  const server = await startWeir({ policy: POLICY, env });
  const client = new RlsClient(server.grpcPort);
  const metadata = { traceparent: TRACEPARENT };
  await client.ask('d', [descriptor('a')], { metadata, requestId: 'first' });
  await client.ask('d', [descriptor('a')]);
  await json(server.httpPort, 'a', { b3: `${TRACE}-00f067aa0ba902b7-1`, 'x-request-id': 'third' });
  const decided = { decision: 1, domain: 'd', sample: 1 };
  const limit = { rule: 'one', limit: 1, remaining: 0, hits: 1, entries: [{ key: 'one', value: 'a' }] };
  expect(linesOf(path)).toMatchObject([
    { earlier: true },
    { ...decided, trace_id: TRACE, request: 'first', code: 'OK', descriptors: [{ ...limit, code: 'OK' }] },
    { ...decided, request: '1.1', code: 'OVER_LIMIT', descriptors: [{ ...limit, code: 'OVER_LIMIT' }] },
    { ...decided, trace_id: TRACE, request: 'third', code: 'OVER_LIMIT' },
  ]);
  renameSync(path, `${path}.1`);
  await waitFor('lines in the new file', async () => {
    await json(server.httpPort, 'b');
    return linesOf(path).length > 0 ? true : undefined;
  });
  expect(server.log().filter(({ decision }) => decision !== undefined)).toEqual([]);
});

test('prints samples of worker processes, also of requests that another process received', async () => {
  const redis = await startRedis();
  const env = { DECISION_LOG_SAMPLE: 'denied=1', WORKERS: '2', REDIS_URL: `127.0.0.1:${redis.port}` };
  const server = await startWeir({
    policy: POLICY.replace('requests_per_unit: 1', 'requests_per_unit: 0'),
    env,
  });
  await json(server.httpPort, 'a', { traceparent: TRACEPARENT });
  const line = await waitFor('the line', async () => server.log().find(({ decision }) => decision === 1));
  expect(line).toMatchObject({ trace_id: TRACE, domain: 'd', code: 'OVER_LIMIT' });
  expect(line['worker']).toEqual(expect.any(Number));
  const { body } = await httpRequest(server.httpPort, '/metrics');
  expect(body).toContain('weir_decision_log_lines_dropped_total 0');
});

test('a file that cannot be written ends the start with an error message', async () => {
  const env = { DECISION_LOG_SAMPLE: 'ok=1', DECISION_LOG_FILE: '/nowhere/at/all' };
  const server = await startWeir({ policy: POLICY, env, untilHealthy: false });
  expect(await server.process.exited).toMatchObject({ code: 1 });
  expect(server.process.stderr()).toContain(
    'DECISION_LOG_FILE: cannot write /nowhere/at/all: the parent directory does not exist; create the ' +
      'directory, or correct the path',
  );
});
