/* Tests the data of the page on the debug port: /overview, once and as events, and /history. */
import { writeFileSync } from 'node:fs';
import { afterEach, expect, test } from '@jest/globals';
import { newAdminToken } from '../../src/admin/admin-tokens.js';
import type {
  HistoryAnswer,
  HistoryPoint,
  HistoryQuestion,
  Overview,
  OverviewAnswer,
} from '../../src/admin/page/messages.js';
import { MAX_SUBSCRIBERS } from '../../src/admin/page/overview-service.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { httpRequest } from '../support/process/http-client.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { startRedis } from '../support/redis/redis-server.js';
import { type EventReader, readEvents } from '../support/weir/events.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';
import { untilAllServe } from '../support/weir/workers.js';

const POLICY = `
domain: d
descriptors:
  - key: tenant
    rate_limit: { unit: day, requests_per_unit: 3 }
  - key: watched
    phase: monitoring
    rate_limit: { unit: day, requests_per_unit: 1 }
${['error', 'allow', 'deny', 'local']
  .map(
    (policy) => `
  - key: ${policy}
    rate_limit: { unit: day, requests_per_unit: 100, on_store_failure: ${policy} }`,
  )
  .join('')}
`;
/** A step lasts five seconds, and its data is complete at its end. */
const STEPS_MS = 20_000;

const folder = new TempDir();

let server: WeirServer;
const readers: EventReader[] = [];
afterEach(() => {
  for (const reader of readers.splice(0)) reader.close();
});

async function follow(headers = {}): Promise<EventReader> {
  const reader = await readEvents(server.debugPort, headers);
  readers.push(reader);
  return reader;
}

async function ask<Answer>(path: string, question: object): Promise<Answer> {
  const { status, body } = await httpRequest(server.debugPort, path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(question),
  });
  expect({ status, body }).toMatchObject({ status: 200 });
  return JSON.parse(body);
}
const history = (question: HistoryQuestion = {}) => ask<HistoryAnswer>('/history', question);
const overviews = ({ events }: EventReader) =>
  events.flatMap(({ name, data }) => (name === 'overview' ? [data as Overview] : []));

/** Sends traffic on four connections: a tenant with three hits, and two requests for a rule that only monitors. */
async function someTraffic(): Promise<void> {
  const clients = Array.from({ length: 4 }, () => new RlsClient(server.grpcPort));
  for (const client of clients) await client.ask('d', [descriptor(['tenant=acme'])]);
  for (const client of clients.slice(2)) await client.ask('d', [descriptor(['watched=x'])]);
  for (const client of clients) client.close();
}

/** Sends calls for each failure policy while Redis is unavailable: three that fail use gRPC, and one JSON. */
async function failingTraffic(): Promise<void> {
  const client = new RlsClient(server.grpcPort);
  for (const [policy, calls] of [
    ['error', 3],
    ['allow', 4],
    ['deny', 5],
    ['local', 6],
  ] as const) {
    const asked = Array.from({ length: calls }, () => client.ask('d', [descriptor([`${policy}=x`])]));
    await Promise.allSettled(asked);
  }
  client.close();
  const json = { domain: 'd', descriptors: [{ entries: [{ key: 'error', value: 'x' }] }] };
  const refused = await httpRequest(server.httpPort, '/json', {
    method: 'POST',
    body: JSON.stringify(json),
  });
  expect(refused.status).toBe(503);
}

/** Returns how many descriptors were counted in the last hour. */
async function allSums(): Promise<Record<string, number>> {
  const { all, step } = await history();
  return Object.fromEntries(
    Object.entries(all ?? {}).map(([key, rates]) => [
      key,
      Math.round(rates.reduce((sum: number, rate: number) => sum + rate * step, 0)),
    ]),
  );
}

test.each([1, 2])(
  'with WORKERS=%i, counts rules step by step, also those that Redis did not decide, and sends each step to readers',
  async (workers) => {
    const redis = await startRedis();
    server = await startWeir({
      policy: POLICY,
      env: { REDIS_URL: `127.0.0.1:${redis.port}`, WORKERS: String(workers) },
    });
    if (workers > 1) await untilAllServe(server);
    const reader = await follow();
    expect(reader.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
    });
    await waitFor('Redis', () => overviews(reader).at(-1)?.store.nodes[0]?.up === workers);
    await someTraffic();
    const overview = await waitFor('the latency of Redis', async () => {
      const told = await ask<OverviewAnswer>('/overview', {});
      return typeof told.store.nodes[0]?.latency_ms === 'number' ? told : undefined;
    });
    expect(overview).toMatchObject({
      caller: { by: 'loopback', right: 'write' },
      health: { status: 'SERVING' },
      store: { up: true },
      policy: {
        domains: [{ domain: 'd', state: 'ok', phase: 'active' }],
        errors: [],
        reload: { result: 'ok' },
      },
    });
    expect(overview.workers).toHaveLength(workers > 1 ? workers : 0);
    expect(overview.store.nodes).toEqual([
      {
        redis: 'main',
        node: `redis://127.0.0.1:${redis.port}`,
        up: workers,
        of: workers,
        latency_ms: expect.any(Number),
      },
    ]);

    writeFileSync(server.policyPath ?? '', 'domain: d\ndescriptors: 5\n');
    await waitFor('the reload', () => overviews(reader).at(-1)?.policy.reload.result === 'error');
    expect(overviews(reader).at(-1)?.policy).toMatchObject({
      domains: [{ domain: 'd', state: 'kept' }],
      errors: [expect.stringMatching(/policy\.yaml:2:14: descriptors: .+/)],
    });

    await redis.stop();
    await waitFor('Redis to go away', () => overviews(reader).at(-1)?.store.nodes[0]?.up === 0);
    const { up, nodes } = overviews(reader).at(-1)!.store;
    expect([up, nodes]).toMatchObject([false, [{ up: 0, of: workers, reason: 'disconnected' }]]);
    await failingTraffic();
    await waitFor('all of it to be counted', async () => (await allSums())['errors'] === 4, STEPS_MS);
    expect(await allSums()).toEqual({
      ...{ ok: 15, denied: 6, would: 1 },
      ...{ errors: 4, failure_allow: 4, failure_deny: 5, failure_local: 6 },
    });
    const { sums, step } = await history();
    expect(sums).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ domain: 'd', rule: 'tenant', hour: { ok: 3, denied: 1, would: 0 } }),
        expect.objectContaining({ domain: 'd', rule: 'watched', hour: { ok: 2, denied: 0, would: 1 } }),
      ]),
    );
    const { series } = await history({ rules: [{ domain: 'd', rule: 'watched' }] });
    const sumOf = (rates: readonly number[] = []) => rates.reduce((sum, rate) => sum + rate * step, 0);
    expect([sumOf(series?.[0]?.ok), sumOf(series?.[0]?.would)]).toEqual([2, 1]);
    expect(reader.events[0]).toEqual({ name: 'caller', data: { by: 'loopback', right: 'write' } });
    const points = reader.events.flatMap(({ name, data }) =>
      name === 'point' ? [data as HistoryPoint] : [],
    );
    expect(points.reduce((sum, { errors }) => sum + errors * 5, 0)).toBeCloseTo(4);
    const { point } = await ask<OverviewAnswer>('/overview', {});
    // Each answer computes the end of the step again, in milliseconds.
    await waitFor('the same point as an event', () =>
      reader.events.some(({ name, data }) => {
        const { ends, ...rates } = data as HistoryPoint;
        return name === 'point' && Math.abs(ends - point.ends) < 1 && rates.errors === point.errors;
      }),
    );
  },
);

test('sends nothing to unauthorised readers, and stops when a token is revoked', async () => {
  const tokens = folder.join('tokens');
  const reader = newAdminToken('dashboard', 'read');
  writeFileSync(tokens, `${reader.line}\n`);
  server = await startWeir({ policy: POLICY, env: { ADMIN_TOKENS_FILE: tokens } });
  const refused = await follow();
  await waitFor('the refusal', () => refused.ended);
  expect([refused.status, JSON.parse(refused.rest)]).toEqual([
    401,
    { error: expect.stringContaining('token') },
  ]);
  const foreign = await follow({ authorization: `Bearer ${reader.token}`, origin: 'http://evil.example' });
  expect(foreign.status).toBe(403);
  const follower = await follow({ authorization: `Bearer ${reader.token}` });
  expect(follower.status).toBe(200);
  await waitFor('the first events', () => follower.events.length >= 2);
  expect(follower.events[0]).toEqual({ name: 'caller', data: { by: 'dashboard', right: 'read' } });
  writeFileSync(tokens, `${newAdminToken('other', 'read').line}\n`);
  await waitFor('the end', () => follower.ended, STEPS_MS);
});

test('serves a bounded number of readers, is not delayed by a stalled one, and waits for none at the end', async () => {
  server = await startWeir({ policy: POLICY, env: { SHUTDOWN_DRAIN_DELAY: '0s', SHUTDOWN_GRACE: '10m' } });
  const all = await Promise.all(Array.from({ length: MAX_SUBSCRIBERS }, () => follow()));
  for (const reader of all.slice(0, 50)) reader.pause();
  const late = await follow();
  expect(late.status).toBe(503);
  const last = all.at(-1) as EventReader;
  await waitFor('a step', () => last.events.some(({ name }) => name === 'point'), STEPS_MS);
  expect(await server.stop('SIGTERM')).toMatchObject({ code: 0 });
  await waitFor('the end', () => last.ended);
});
