/*
 * Tests workers that hang (SIGSTOP): they get no new connections, and are replaced. A worker that only pauses is kept.
 */
import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { OverviewAnswer } from '../../src/admin/page/messages.js';
import { STATUS } from '../../src/grpc/grpc-server.js';
import { REPLACE_AFTER_MS } from '../../src/server/workers/worker-watchdog.js';
import { RawClient } from '../support/grpc/grpc-client.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { httpRequest } from '../support/process/http-client.js';
import { startProcess } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';
import { isAlive, metric, untilAllServe, type WorkerDetail, workersOf } from '../support/weir/workers.js';

const POLICY =
  'domain: d\ndescriptors: [{ key: k, rate_limit: { token_bucket: { max_tokens: 100000, fill_interval: 1h } } }]\n';
const HEALTH = '/grpc.health.v1.Health/Check';
/** Below the time after which a hanging worker is replaced. */
const SOON_MS = 4000;
const SILENT = 'a worker process does not answer and gets no new connections';
const BACK = 'a worker process is responding again and receives new connections';
const REPLACED = 'a worker process did not answer and was killed; weir starts a replacement';

let redis: RedisServer;
let server: WeirServer;
/** Number of log lines before the test. */
let earlierLines = 0;
/** Processes that a test has stopped. */
const stopped = new Set<number>();
beforeAll(async () => {
  redis = await startRedis();
});

function hang(pid: number): void {
  stopped.add(pid);
  process.kill(pid, 'SIGSTOP');
}

function resumeAll(): void {
  for (const pid of stopped) if (isAlive(pid)) process.kill(pid, 'SIGCONT');
  stopped.clear();
}

async function start(env: NodeJS.ProcessEnv = {}): Promise<void> {
  server = await startWeir({
    policy: POLICY,
    env: { REDIS_URL: `127.0.0.1:${redis.port}`, WORKERS: '2', LOG_LEVEL: 'debug', ...env },
  });
  await untilAllServe(server);
  earlierLines = 0;
}

const said = (msg: string): Record<string, unknown>[] =>
  server
    .log()
    .slice(earlierLines)
    .filter((line) => line['msg'] === msg);

/** Opens a connection to each of the two workers. */
async function connectToBoth(): Promise<Map<number, RlsClient>> {
  const clients = new Map<number, RlsClient>();
  // On a loaded machine, a worker may count as silent for a moment.
  for (let attempt = 1; clients.size < 2; attempt++) {
    const value = `attempt ${attempt}.`;
    const client = new RlsClient(server.grpcPort);
    await client.ask('d', [descriptor([`k=${value}`])]);
    const decided = await waitFor('the line of the decision', () =>
      said('decision').find(({ entries }) => JSON.stringify(entries).includes(value)),
    );
    const worker = Number(decided['worker']);
    if (clients.has(worker)) client.close();
    else clients.set(worker, client);
  }
  return clients;
}

/** Repeats calls, at most 50 a second, until `stop`; reports those that were not OK, or late. */
function load(ask: () => Promise<{ readonly code: number; readonly details: string }>): {
  stop(): Promise<{ readonly calls: number; readonly bad: readonly string[] }>;
} {
  let running = true;
  const bad: string[] = [];
  let calls = 0;
  const done = (async () => {
    while (running) {
      const { code, details } = await ask();
      calls++;
      if (code !== STATUS.OK) bad.push(`${code} ${details}`);
      await setTimeout(20);
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

/**
 * Makes six concurrent calls on separate connections, so that the hanging worker is next several times. They must not
 * wait until it is replaced.
 */
async function expectSixDecided(address: string): Promise<void> {
  const ask = async (): Promise<number> => {
    const client = new RawClient(address);
    const { code } = await client.unary(HEALTH, Buffer.alloc(0), { timeoutMs: 60_000 });
    client.close();
    return code;
  };
  expect(await Promise.all(Array.from({ length: 6 }, ask))).toEqual(
    Array.from({ length: 6 }, () => STATUS.OK),
  );
  expect(said(REPLACED)).toEqual([]);
}

const askDebugPort = (path: string, question: object) =>
  httpRequest(server.debugPort, path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(question),
  });
const ENTRIES = [{ key: 'k', value: 'v' }];
const BUCKETS = [
  { action: 'show', entries: ENTRIES },
  { action: 'reset', entries: ENTRIES, dry_run: true },
].map((question) => ['/buckets', question] as const);
const OTHERS = [['/top', {}] as const, ['/history', {}] as const, ['/overview', {}] as const];

const byId = async (id: number): Promise<WorkerDetail | undefined> =>
  (await workersOf(server)).find((worker) => worker.id === id);

const untilSilent = (id: number): Promise<unknown> =>
  waitFor('the worker to count as silent', async () => (await byId(id))?.silentSeconds !== undefined);
const untilServing = (id: number): Promise<unknown> =>
  waitFor('the worker to serve', async () => (await byId(id))?.status === 'SERVING');

describe('with round-robin', () => {
  beforeAll(() => start());
  beforeEach(() => {
    earlierLines = server.log().length;
  });
  afterEach(resumeAll);

  test('a worker that hangs is bypassed and replaced, and no other call is disturbed', async () => {
    const counts = () =>
      Promise.all(
        ['weir_silent_workers_killed_total', 'weir_worker_restarts_total'].map((name) =>
          metric(server, name),
        ),
      );
    const [killed = 0, restarts = 0] = await counts();
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
    expect(await workersOf(server)).toMatchObject([
      { id: hung.id, status: 'NOT_SERVING', silentSeconds: expect.any(Number) },
      { id: well.id, status: 'SERVING' },
    ]);
    expect(await metric(server, 'weir_worker_states{state="silent"}')).toBe(1);
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
    expect(said(SILENT)).toMatchObject([{ worker: hung.id, pid: hung.pid, level: 'warning' }]);
    expect(said(REPLACED)).toMatchObject([
      { worker: hung.id, pid: hung.pid, how: 'SIGKILL', silentMs: REPLACE_AFTER_MS, level: 'error' },
    ]);
    expect(await counts()).toEqual([killed + 1, restarts + 1]);
    expect(await metric(server, 'weir_worker_states{state="serving"}')).toBe(2);
    for (const client of clients.values()) client.close();
  });

  test('a worker that continues in time is used again, and calls do not wait if all workers hang', async () => {
    const before = await workersOf(server);
    const [hung] = before as [WorkerDetail];
    hang(hung.pid);
    await expectSixDecided(`127.0.0.1:${server.grpcPort}`);
    // A worker that answers serves requests that only read.
    const read = await Promise.all(
      [...BUCKETS, ...OTHERS].map(([path, question]) => askDebugPort(path, question)),
    );
    expect(read.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    await untilSilent(hung.id);
    await expectSixDecided(`127.0.0.1:${server.grpcPort}`);
    process.kill(hung.pid, 'SIGCONT');
    await untilServing(hung.id);
    expect(said(BACK)).toMatchObject([{ worker: hung.id, pid: hung.pid }]);
    // Both workers accept connections.
    for (const client of (await connectToBoth()).values()) client.close();

    for (const { pid } of before) hang(pid);
    // Commands on buckets need no worker.
    for (const { status } of await Promise.all(BUCKETS.map(([path, asked]) => askDebugPort(path, asked))))
      expect(status).toBe(200);
    const overview = async (): Promise<OverviewAnswer> =>
      JSON.parse((await askDebugPort('/overview', {})).body);
    await waitFor('both to be silent', async () =>
      (await overview()).workers.every(({ silent_seconds }) => silent_seconds !== undefined),
    );
    expect((await overview()).health).toEqual({
      status: 'NOT_SERVING',
      reason: 'no worker process answers',
    });
    // Connections to both ports wait for the first worker that answers.
    const waiting = overNewConnection();
    const probe = httpRequest(server.httpPort, '/healthcheck');
    process.kill(hung.pid, 'SIGCONT');
    expect((await probe).status).toBe(200);
    expect((await waiting).code).toBe(STATUS.OK);
    for (const { pid } of before) process.kill(pid, 'SIGCONT');
    for (const { id } of before) await untilServing(id);
    expect(await workersOf(server)).toEqual(before);
    expect(said(REPLACED)).toEqual([]);
  });
});

describe('with other sockets', () => {
  let folder: TempDir;
  beforeEach(() => {
    folder = new TempDir();
  });
  afterEach(() => {
    resumeAll();
  });

  /** Starts a server; one of its workers hangs. Resolves when new connections are served; returns the worker. */
  async function expectServedWithout(env: NodeJS.ProcessEnv): Promise<WorkerDetail> {
    await start(env);
    const [hung] = (await workersOf(server)) as [WorkerDetail];
    hang(hung.pid);
    const path = env['GRPC_UDS'];
    await expectSixDecided(path === undefined ? `127.0.0.1:${server.grpcPort}` : `unix:${path}`);
    return hung;
  }

  test(
    'with round-robin and the Unix domain socket that a killed process left, new connections are served as ' +
      'soon as a worker hangs, and a drain does not wait for it',
    async () => {
      const path = folder.join('weir.sock');
      const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => console.log('on'))`;
      const left = startProcess(process.execPath, ['-e', script]);
      await left.waitForLine(/^on$/);
      await left.stop('SIGKILL');
      const hung = await expectServedWithout({ GRPC_UDS: path, SHUTDOWN_GRACE: '10m' });
      expect(await server.stop()).toEqual({ code: 0, signal: null });
      expect(isAlive(hung.pid)).toBe(false);
    },
  );

  test.each([
    ['a listener', false],
    ['a Unix domain socket', true],
  ])(
    'with %s that all share, new connections are served as soon as a worker hangs',
    async (_name, atPath) => {
      const env = { WORKER_SCHEDULING: 'kernel', ...(atPath && { GRPC_UDS: folder.join('weir.sock') }) };
      await expectServedWithout(env);
    },
  );

  test('with reuse-port, connections of a hanging worker are closed when it is killed', async () => {
    await start({ WORKER_SCHEDULING: 'reuse-port' });
    const [hung] = (await workersOf(server)) as [WorkerDetail];
    hang(hung.pid);
    // The calls have no deadlines, so those that wait for the hanging worker end only with their connection.
    const decided = Array.from({ length: 12 }, async () => {
      const client = new RlsClient(server.grpcPort);
      await waitFor(
        'a decision',
        async () => (await client.ask('d', [descriptor(['k=reuse'])])).code === STATUS.OK,
      );
    });
    await Promise.all(decided);
    await waitFor('it to be replaced', () => said(REPLACED).length > 0);
  });
});
