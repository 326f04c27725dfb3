/* Tests traces (TRACING_ENABLED) as a collector receives them. */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { RlsClient } from '../support/grpc/rls-client.js';
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../support/otlp/otlp-receiver.js';
import { httpRequest } from '../support/process/http-client.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';
import { metric } from '../support/weir/workers.js';

const POLICY = `
domain: d
descriptors:
  - { key: one, rate_limit: { unit: day, requests_per_unit: 1 } }
`;
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const SAMPLED = `00-${TRACE}-${SPAN}-01`;
const METHOD = 'envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
const directory = new TempDir();

const descriptor = (value: string) => ({
  entries: [{ key: 'one', value }],
  limit: undefined,
  hitsAddend: undefined,
  isNegativeHits: false,
});
const json = (server: WeirServer, value: string, headers = {}) =>
  httpRequest(server.httpPort, '/json', {
    method: 'POST',
    headers,
    body: JSON.stringify({ domain: 'd', descriptors: [{ entries: [{ key: 'one', value }] }] }),
  });
const received = (receiver: OtlpReceiver, count: number): Promise<readonly ReceivedSpan[]> =>
  waitFor('spans', async () => (receiver.spans.length >= count ? receiver.spans : undefined));
const environment = (receiver: OtlpReceiver, more = {}) => ({
  TRACING_ENABLED: 'true',
  OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
  ...more,
});

test('over HTTP, spans of calls and takes have conventional names, parents and the rule', async () => {
  const receiver = await startOtlpReceiver('http');
  const path = directory.join('decisions');
  const server = await startWeir({
    policy: POLICY,
    env: environment(receiver, {
      TRACING_SERVICE_NAME: 'limits',
      TRACING_SERVICE_NAMESPACE: 'shop',
      TRACING_SERVICE_INSTANCE_ID: 'pod-1',
      DECISION_LOG_SAMPLE: 'denied=1,ok=1',
      DECISION_LOG_FILE: path,
    }),
  });
  const client = new RlsClient(server.grpcPort);
  await client.ask('d', [descriptor('a')], { metadata: { traceparent: SAMPLED } });
  await client.ask('d', [descriptor('a')]);
  await client.ask('', []);
  await json(server, 'a', { b3: `${TRACE}-${SPAN}-1` });
  // The trace of a caller that does not sample is not recorded, although every trace that begins in weir is.
  await client.ask('d', [descriptor('a')], {
    metadata: { 'x-b3-traceid': TRACE, 'x-b3-spanid': SPAN, 'x-b3-sampled': '0' },
  });
  const spans = await received(receiver, 7);
  const calls = spans.filter(({ kind }) => kind === 2);
  const call = { 'rpc.system.name': 'grpc', 'rpc.method': METHOD, 'network.peer.address': '127.0.0.1' };
  const ok = { ...call, 'rpc.response.status_code': 'OK', 'weir.domain': 'd', 'weir.rule': 'one' };
  expect(calls).toMatchObject([
    { name: METHOD, traceId: TRACE, parentId: SPAN, status: 0, attributes: { ...ok, 'weir.code': 'OK' } },
    { name: METHOD, parentId: '', status: 0, attributes: { ...ok, 'weir.code': 'OVER_LIMIT' } },
    { name: METHOD, status: 0, attributes: { ...call, 'rpc.response.status_code': 'INVALID_ARGUMENT' } },
    {
      name: 'POST /json',
      traceId: TRACE,
      parentId: SPAN,
      attributes: { 'http.response.status_code': 429, 'weir.code': 'OVER_LIMIT' },
    },
  ]);
  const takes = spans.filter(({ name }) => name === 'take');
  expect(takes.map(({ parentId }) => parentId)).toEqual(
    [calls[0], calls[1], calls[3]].map((parent) => parent?.spanId),
  );
  expect(spans[0]?.resource).toMatchObject({
    'service.name': 'limits',
    'service.namespace': 'shop',
    'service.instance.id': 'pod-1',
  });
  const logged = readFileSync(path, 'utf8').trim().split('\n');
  expect(logged.map((line) => JSON.parse(line).trace_id)).toEqual([TRACE, calls[1]?.traceId, TRACE, TRACE]);
});

test('over gRPC, with workers on Redis, a take is a database span with its error', async () => {
  const [receiver, redis] = await Promise.all([startOtlpReceiver('grpc'), startRedis()]);
  const env = environment(receiver, {
    TRACING_EXPORTER_PROTOCOL: 'grpc',
    REDIS_URL: `127.0.0.1:${redis.port}`,
    WORKERS: '2',
  });
  const server = await startWeir({ policy: POLICY, env });
  await json(server, 'a', { traceparent: SAMPLED });
  const [take, call] = await received(receiver, 2);
  expect(call).toMatchObject({ name: 'POST /json', traceId: TRACE, parentId: SPAN });
  expect(take).toMatchObject({
    name: 'EVALSHA',
    kind: 3,
    traceId: TRACE,
    parentId: call?.spanId,
    attributes: {
      'db.system.name': 'redis',
      'db.operation.name': 'EVALSHA',
      'server.address': '127.0.0.1',
      'server.port': redis.port,
      'weir.limits': 1,
    },
  });
  await redis.stop();
  await json(server, 'b');
  const failed = (await received(receiver, 4)).slice(2);
  expect(failed).toMatchObject([
    {
      name: 'EVALSHA',
      status: 2,
      attributes: { 'error.type': expect.any(String) },
      events: [{ name: 'exception' }],
    },
    {
      name: 'POST /json',
      status: 2,
      attributes: { 'http.response.status_code': 503, 'error.type': '503' },
    },
  ]);
});

test('a collector that refuses or hangs delays no call, and lost spans are counted', async () => {
  const receiver = await startOtlpReceiver('http', 'refuse');
  const server = await startWeir({
    policy: POLICY,
    env: environment(receiver, { SHUTDOWN_GRACE: '300ms', OTEL_EXPORTER_OTLP_TIMEOUT: '60000' }),
  });
  const client = new RlsClient(server.grpcPort);
  await json(server, 'a');
  await waitFor('a loss', async () => {
    const lost = await metric(server, 'weir_trace_spans_dropped_total{reason="export"}');
    return lost > 0 ? lost : undefined;
  });
  receiver.behaviour = 'take';
  await json(server, 'a');
  await received(receiver, 2);
  const said = await waitFor('the news', async () => {
    const lines = server
      .log()
      .filter(({ msg }) => /the OpenTelemetry collector (?:does not accept|accepts) spans/.test(String(msg)));
    return lines.length === 2 ? lines : undefined;
  });
  expect(said).toMatchObject([{ level: 'warning', reason: 'Bad Request' }, { level: 'info' }]);

  receiver.behaviour = 'hang';
  const { messages } = receiver;
  // Two spans per call: more than the queue holds, plus those that are being sent.
  for (let i = 0; i < 13; i++) {
    await Promise.all(Array.from({ length: 100 }, () => client.ask('d', [descriptor('a')])));
  }
  expect(receiver.messages).toBe(messages + 1);
  const lost = await metric(server, 'weir_trace_spans_dropped_total{reason="queue"}');
  // The first message is full, unless it was sent because a second had passed.
  expect(lost).toBeGreaterThanOrEqual(2 * 1300 - 2048 - 64);
  expect(lost).toBeLessThan(2 * 1300 - 2048);
});
