/*
 * Kills each worker, and then the primary process, under load: only calls that a killed process was answering fail. A
 * reload under the same load fails none.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import { STATUS } from '../../src/grpc/grpc-server.js';
import { RlsClient, type RlsReply } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { waitFor } from '../support/process/wait-for.js';
import { startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';
import { isAlive, metric, untilAllServe, workersOf } from '../support/weir/workers.js';

const CONNECTIONS = 4;
/** Calls that each connection has under way. */
const CALLS = 8;
/** The limit of the nth version of the policy. */
const BASE = 100_000;

const policy = (version: number): string =>
  `domain: d\ndescriptors: [{ key: k, rate_limit: { unit: year, requests_per_unit: ${BASE + version} } }]\n`;

let server: WeirServer;
let clients: readonly RlsClient[];
beforeAll(async () => {
  const redis = await startRedis();
  const env = { REDIS_URL: `127.0.0.1:${redis.port}`, WORKERS: '2' };
  server = await startWeir({ policy: policy(0), env });
  await server.process.waitForLine(/weir serves/);
  await untilAllServe(server);
});
beforeEach(async () => {
  clients = Array.from({ length: CONNECTIONS }, () => new RlsClient(server.grpcPort));
  for (const client of clients) await client.ask('d', [descriptor(['k=v'])]);
});

/** Calls on all connections without a pause, while `act` runs. Returns the calls that failed, and the limits seen. */
async function during(act: (limits: ReadonlySet<number>) => Promise<unknown>) {
  const failed: RlsReply[] = [];
  const limits = new Set<number>();
  let calls = 0;
  let done = false;
  const ask = async (client: RlsClient): Promise<void> => {
    while (!done) {
      const reply = await client.ask('d', [descriptor(['k=v'])], { timeoutMs: 30_000 });
      calls++;
      if (reply.code !== STATUS.OK) failed.push(reply);
      else limits.add(reply.response?.statuses[0]?.currentLimit?.requestsPerUnit ?? 0);
    }
  };
  const asking = clients.flatMap((client) => Array.from({ length: CALLS }, () => ask(client)));
  try {
    await waitFor('calls', () => calls > CONNECTIONS * CALLS);
    await act(limits);
    const before = calls;
    await waitFor('calls afterwards', () => calls > before + CONNECTIONS * CALLS);
  } finally {
    done = true;
    await Promise.all(asking);
    for (const client of clients) client.close();
  }
  return failed;
}

test.each([0, 1])('of worker %i: at most the calls in flight fail', async (at) => {
  const { pid = 0 } = (await workersOf(server))[at] ?? {};
  let replacedAt = 0;
  const failed = await during(async () => {
    process.kill(pid, 'SIGKILL');
    await waitFor('another worker', async () => {
      const workers = await workersOf(server);
      return workers.length === 2 && workers.every((one) => one.status === 'SERVING' && one.pid !== pid);
    });
    replacedAt = performance.now();
  });
  expect(failed.length).toBeLessThanOrEqual(CONNECTIONS * CALLS);
  for (const { sentAt } of failed) expect(sentAt).toBeLessThan(replacedAt);
});

test('a reload under load fails no call, and every version takes effect', async () => {
  const path = server.policyPath as string;
  const failed = await during(async (limits) => {
    for (let version = 1; version <= 4; version++) {
      writeFileSync(`${path}.new`, policy(version));
      renameSync(`${path}.new`, path);
      await waitFor('the new limit', () => limits.has(BASE + version));
    }
  });
  expect(failed).toEqual([]);
  expect(await metric(server, 'weir_workers_with_other_policies')).toBe(0);
});

test('of the primary process: at most the calls in flight fail, and a new server continues', async () => {
  const pids = (await workersOf(server)).map(({ pid }) => pid);
  await server.stop('SIGKILL');
  await waitFor('the workers to end', () => !pids.some(isAlive));
  const { code } = await (clients[0] as RlsClient).ask('d', [descriptor(['k=v'])]);
  expect(code).toBe(STATUS.UNAVAILABLE);
});
