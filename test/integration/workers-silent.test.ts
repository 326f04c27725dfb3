/* WORKERS: a process that is alive and hangs (SIGSTOP) is gone round, then replaced; one that only paused is not. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { STATUS } from '../../src/grpc/grpc-server.js';
import { RawClient } from '../support/grpc/grpc-client.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { httpRequest } from '../support/process/http-client.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';
import { isAlive, metric, untilAllServe, type WorkerDetail, workersOf } from '../support/weir/workers.js';

const POLICY =
  'domain: d\ndescriptors: [{ key: k, rate_limit: { token_bucket: { max_tokens: 100000, fill_interval: 1h } } }]\n';
const HEALTH = '/grpc.health.v1.Health/Check';
/** Well below the time until a worker that hangs is replaced. */
const SOON_MS = 2000;
const SILENT = 'a worker process does not answer, and gets no new connections';
const BACK = 'a worker process answers again, and gets connections';
const REPLACED = 'a worker process did not answer and was killed; another takes its place';

let redis: RedisServer;
let folder: TempDir;
let server: WeirServer;
/** Processes that a test has stopped. */
const stopped = new Set<number>();
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(() => {
  folder = new TempDir();
});
afterEach(async () => {
  for (const pid of stopped) if (isAlive(pid)) process.kill(pid, 'SIGCONT');
  stopped.clear();
  await server.stop();
  folder.remove();
});

function hang(pid: number): void {
  stopped.add(pid);
  process.kill(pid, 'SIGSTOP');
}

async function start(env: NodeJS.ProcessEnv = {}): Promise<void> {
  server = await startWeir({
    policy: POLICY,
    env: { REDIS_URL: `127.0.0.1:${redis.port}`, WORKERS: '2', LOG_LEVEL: 'debug', ...env },
  });
  await untilAllServe(server);
}

const said = (msg: string): Record<string, unknown>[] => server.log().filter((line) => line['msg'] === msg);

/** A connection to each of the two workers. */
async function connectToBoth(): Promise<Map<number, RlsClient>> {
  const clients = new Map<number, RlsClient>();
  for (const value of ['first', 'second']) {
    const client = new RlsClient(server.grpcPort);
    await client.ask('d', [descriptor([`k=${value}`])]);
    const decided = await waitFor('the line of the decision', () =>
      said('decision').find(({ entries }) => JSON.stringify(entries).includes(value)),
    );
    clients.set(Number(decided['worker']), client);
  }
  expect(clients.size).toBe(2);
  return clients;
}

async function timed<T>(ask: () => Promise<T>): Promise<{ readonly result: T; readonly ms: number }> {
  const startMs = performance.now();
  const result = await ask();
  return { result, ms: performance.now() - startMs };
}

/** Asks again and again until `stop`; says what was not OK, or late. */
function load(ask: () => Promise<{ readonly code: number; readonly details: string }>): {
  stop(): Promise<{ readonly calls: number; readonly bad: readonly string[] }>;
} {
  let running = true;
  const bad: string[] = [];
  let calls = 0;
  const done = (async () => {
    while (running) {
      const { result, ms } = await timed(ask);
      calls++;
      if (result.code !== STATUS.OK || ms > SOON_MS) bad.push(`${result.code} ${result.details} ${ms}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  return {
    async stop() {
      running = false;
      await done;
      return { calls, bad };
    },
  };
}

async function overNewConnection(): Promise<{ readonly code: number; readonly details: string }> {
  const client = new RlsClient(server.grpcPort);
  const reply = await client.ask('d', [descriptor(['k=new'])], { timeoutMs: SOON_MS });
  client.close();
  return reply;
}

const byId = async (id: number): Promise<WorkerDetail | undefined> =>
  (await workersOf(server)).find((worker) => worker.id === id);

const untilSilent = (id: number): Promise<unknown> =>
  waitFor('the worker to count as silent', async () => (await byId(id))?.silentSeconds !== undefined);

test('a worker that hangs is gone round and replaced, and nobody else is disturbed', async () => {
  await start();
  const clients = await connectToBoth();
  const [hung, well] = (await workersOf(server)) as [WorkerDetail, WorkerDetail];
  const onOther = load(() =>
    (clients.get(well.id) as RlsClient).ask('d', [descriptor(['k=other'])], { timeoutMs: SOON_MS }),
  );
  const newOnes = load(overNewConnection);
  const asJson = load(async () => {
    const body = JSON.stringify({ domain: 'd', descriptors: [{ entries: [{ key: 'k', value: 'json' }] }] });
    const { status } = await httpRequest(server.httpPort, '/json', { method: 'POST', body });
    return { code: status === 200 ? STATUS.OK : status, details: 'json' };
  });
  hang(hung.pid);
  await untilSilent(hung.id);
  const detail = await timed(() => workersOf(server));
  expect(detail.result).toMatchObject([
    { id: hung.id, status: 'NOT_SERVING', silentSeconds: expect.any(Number) },
    { id: well.id, status: 'SERVING' },
  ]);
  const scrape = await timed(() => metric(server, 'weir_worker_states{state="silent"}'));
  expect(scrape.result).toBe(1);
  // A busy worker is waited for for a second.
  expect(Math.max(detail.ms, scrape.ms)).toBeLessThan(800);
  expect((await httpRequest(server.httpPort, '/healthcheck')).status).toBe(200);
  const after = await waitFor('another in its place', async () => {
    const workers = await workersOf(server);
    const serving = workers.filter(({ pid, status }) => status === 'SERVING' && pid !== hung.pid);
    return serving.length === 2 ? serving : undefined;
  });
  for (const { calls, bad } of [await onOther.stop(), await newOnes.stop(), await asJson.stop()]) {
    expect(bad).toEqual([]);
    expect(calls).toBeGreaterThan(10);
  }
  expect(after).toContainEqual(expect.objectContaining({ pid: well.pid }));
  expect(isAlive(hung.pid)).toBe(false);
  expect(said(SILENT)).toMatchObject([{ id: hung.id, pid: hung.pid, level: 'warning' }]);
  expect(said(REPLACED)).toMatchObject([{ how: 'SIGKILL', silentMs: 5000, level: 'error' }]);
  expect(await metric(server, 'weir_silent_workers_killed_total')).toBe(1);
  expect(await metric(server, 'weir_worker_restarts_total')).toBe(1);
  expect(await metric(server, 'weir_worker_states{state="serving"}')).toBe(2);
  for (const client of clients.values()) client.close();
});

test('a worker that goes on in time is in rotation again', async () => {
  await start();
  const before = await workersOf(server);
  const hung = before[0] as WorkerDetail;
  hang(hung.pid);
  await untilSilent(hung.id);
  process.kill(hung.pid, 'SIGCONT');
  await waitFor('it to serve', async () => (await byId(hung.id))?.status === 'SERVING');
  expect(await workersOf(server)).toEqual(before);
  expect(said(BACK)).toMatchObject([{ id: hung.id, pid: hung.pid }]);
  expect(said(REPLACED)).toEqual([]);
  // Both take connections.
  for (const client of (await connectToBoth()).values()) client.close();
});

test('a worker that takes its time to start is asked from then on', async () => {
  await start();
  const [victim] = (await workersOf(server)) as [WorkerDetail];
  process.kill(victim.pid, 'SIGKILL');
  const next = await waitFor('the one that takes its place', async () =>
    (await workersOf(server)).find(({ id }) => id === 3),
  );
  hang(next.pid);
  const startMs = performance.now();
  await waitFor('a few questions', () => performance.now() - startMs > 2500);
  expect(await byId(3)).toMatchObject({ status: 'NOT_SERVING' });
  process.kill(next.pid, 'SIGCONT');
  await waitFor('it to serve', async () => (await byId(3))?.status === 'SERVING');
  const servedMs = performance.now();
  await waitFor('a few questions more', async () => {
    expect(await byId(3)).toMatchObject({ pid: next.pid, status: 'SERVING' });
    return performance.now() - servedMs > 2500;
  });
  expect([...said(SILENT), ...said(REPLACED)]).toEqual([]);
});

test('while the primary process is paused, nobody is silent', async () => {
  await start();
  const before = await workersOf(server);
  const clients = await connectToBoth();
  const primary = server.process.pid;
  hang(primary);
  // Longer than a silence that would be the workers'; what is measured is time itself.
  const endMs = performance.now() + 7000;
  await waitFor('the pause to be over', async () => {
    for (const client of clients.values()) {
      expect((await client.ask('d', [descriptor(['k=pause'])])).code).toBe(STATUS.OK);
    }
    return performance.now() > endMs;
  });
  process.kill(primary, 'SIGCONT');
  expect((await overNewConnection()).code).toBe(STATUS.OK);
  const seen = performance.now() + 2000;
  await waitFor('a few questions more', async () => {
    expect(await workersOf(server)).toEqual(before);
    return performance.now() > seen;
  });
  expect([...said(SILENT), ...said(REPLACED)]).toEqual([]);
  for (const client of clients.values()) client.close();
});

test('when all hang, which may be the fault of the machine, none is killed as soon', async () => {
  await start();
  const before = await workersOf(server);
  for (const { pid } of before) hang(pid);
  const longSeconds = 6;
  await waitFor('a silence that one of several would be replaced after', async () =>
    (await workersOf(server)).every(({ silentSeconds = 0 }) => silentSeconds > longSeconds),
  );
  const health = await httpRequest(server.httpPort, '/healthcheck');
  expect([health.status, health.body]).toEqual([500, 'no worker process answers\n']);
  // Nobody is asked in vain.
  const json = await timed(() =>
    httpRequest(server.httpPort, '/json', { method: 'POST', body: '{"domain":"d"}' }),
  );
  expect(json.result.status).toBe(503);
  expect(json.ms).toBeLessThan(1000);
  // A connection waits for the first that answers.
  const waiting = overNewConnection();
  const [first] = before as [WorkerDetail];
  process.kill(first.pid, 'SIGCONT');
  expect((await waiting).code).toBe(STATUS.OK);
  for (const { pid } of before) process.kill(pid, 'SIGCONT');
  await waitFor('all to serve', async () =>
    (await workersOf(server)).every(({ status }) => status === 'SERVING'),
  );
  expect(await workersOf(server)).toEqual(before);
});

test('what only reads is asked of a worker that answers, and changes nothing where none does', async () => {
  await start();
  const workers = await workersOf(server);
  const ask = async (path: string, question: object) => {
    const body = JSON.stringify(question);
    const headers = { 'content-type': 'application/json' };
    return timed(() => httpRequest(server.debugPort, path, { method: 'POST', headers, body }));
  };
  const entries = [{ key: 'k', value: 'v' }];
  const buckets = [
    { action: 'show', entries },
    { action: 'blocks' },
    { action: 'reset', entries, dry_run: true },
  ].map((question) => ['/buckets', question] as const);
  const others = [['/top', {}] as const, ['/history', {}] as const, ['/overview', {}] as const];
  const [first] = workers as [WorkerDetail];
  hang(first.pid);
  const answers = await Promise.all([...buckets, ...others].map(([path, question]) => ask(path, question)));
  expect(answers.map(({ result }) => result.status)).toEqual([200, 200, 200, 200, 200, 200]);
  // The top asks twice, and waits a second for each worker.
  expect(Math.max(...answers.map(({ ms }) => ms))).toBeLessThan(SOON_MS + 1000);
  for (const { pid } of workers) hang(pid);
  const failed = await Promise.all(buckets.map(([path, question]) => ask(path, question)));
  for (const { result, ms } of failed) {
    expect([result.status, JSON.parse(result.body)]).toEqual([
      503,
      { error: 'no worker process answers, so the question could not be asked: try again' },
    ]);
    expect(ms).toBeLessThan(4000);
  }
});

test('a drain does not wait for a worker that hangs', async () => {
  await start({ SHUTDOWN_GRACE: '60s' });
  const [hung] = (await workersOf(server)) as [WorkerDetail];
  hang(hung.pid);
  const { result, ms } = await timed(() => server.stop());
  expect(result).toEqual({ code: 0, signal: null });
  expect(ms).toBeLessThan(20_000);
  expect(isAlive(hung.pid)).toBe(false);
});

describe.each([
  ['round-robin, a port', 'round-robin', false],
  ['round-robin, a Unix domain socket', 'round-robin', true],
  ['a listener that all share', 'kernel', false],
  ['a Unix domain socket that all share', 'kernel', true],
])('with %s', (_name, scheduling, atPath) => {
  test('new connections are served from the first moment that a worker hangs', async () => {
    const path = folder.join('weir.sock');
    await start({ WORKER_SCHEDULING: scheduling, ...(atPath && { GRPC_UDS: path }) });
    const [hung] = (await workersOf(server)) as [WorkerDetail];
    hang(hung.pid);
    const address = atPath ? `unix:${path}` : `127.0.0.1:${server.grpcPort}`;
    const ask = async (): Promise<number> => {
      const client = new RawClient(address);
      const { code } = await client.unary(HEALTH, Buffer.alloc(0), { timeoutMs: SOON_MS });
      client.close();
      return code;
    };
    // At once, so that the turn of the hung one comes several times.
    expect(await Promise.all(Array.from({ length: 6 }, ask))).toEqual(
      Array.from({ length: 6 }, () => STATUS.OK),
    );
    await untilSilent(hung.id);
    expect(await Promise.all(Array.from({ length: 6 }, ask))).toEqual(
      Array.from({ length: 6 }, () => STATUS.OK),
    );
    process.kill(hung.pid, 'SIGCONT');
    await waitFor('it to serve', async () => (await byId(hung.id))?.status === 'SERVING');
  });
});

test('with reuse-port, what the kernel gives to a worker that hangs is closed when that is killed', async () => {
  await start({ WORKER_SCHEDULING: 'reuse-port' });
  const [hung] = (await workersOf(server)) as [WorkerDetail];
  hang(hung.pid);
  // Without deadlines: the calls that wait for the hung worker end only when their connection does.
  const decided = Array.from({ length: 12 }, async () => {
    const client = new RlsClient(server.grpcPort);
    await waitFor(
      'a decision',
      async () => (await client.ask('d', [descriptor(['k=reuse'])])).code === STATUS.OK,
    );
    client.close();
  });
  await Promise.all(decided);
  await waitFor('it to be replaced', () => said(REPLACED).length > 0);
});
