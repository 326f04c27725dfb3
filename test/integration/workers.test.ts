/* Tests WORKERS: several processes on one gRPC port, which act as one server even if one of them crashes. */
import { renameSync, writeFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { STATUS } from '../../src/grpc/grpc-server.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { waitFor } from '../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';
import { isAlive, metric, untilAllServe, type WorkerDetail, workersOf } from '../support/weir/workers.js';

const policy = (tokens: number | string) =>
  `domain: d\ndescriptors: [{ key: k, rate_limit: { token_bucket: { max_tokens: ${tokens}, fill_interval: 1h } } }]\n`;

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});

/** Starts weir; resolves when each of its workers serves. */
async function start(env: NodeJS.ProcessEnv = {}): Promise<WeirServer> {
  const server = await startWeir({
    policy: policy(10),
    env: { REDIS_URL: `127.0.0.1:${redis.port}`, WORKERS: '3', ...env },
  });
  await untilAllServe(server);
  return server;
}

const gone = (pids: readonly number[]): Promise<unknown> =>
  waitFor('the workers to end', async () => (pids.some(isAlive) ? undefined : true));

/** Opens clients with one connection each, because connections are distributed over workers. */
function clients(server: WeirServer, count: number): RlsClient[] {
  return Array.from({ length: count }, () => new RlsClient(server.grpcPort));
}

describe('several workers', () => {
  let server: WeirServer;
  let connections: RlsClient[];
  beforeAll(async () => {
    server = await start({ LOG_LEVEL: 'debug' });
    connections = clients(server, 6);
  });

  /** Resolves with the workers, once another has replaced that process. */
  const untilReplaced = (pid: number | undefined): Promise<readonly WorkerDetail[]> =>
    waitFor('another worker', async () => {
      const workers = await workersOf(server);
      const serving = workers.filter((worker) => worker.status === 'SERVING' && worker.pid !== pid);
      return serving.length === 3 ? serving : undefined;
    });

  /** Resolves with the limits that new connections get. */
  async function limits(connectionCount: number): Promise<readonly unknown[]> {
    const asked = clients(server, connectionCount);
    const replies = await Promise.all(asked.map((client) => client.ask('d', [descriptor(['k=limits'])])));
    for (const client of asked) client.close();
    return replies.map(({ response }) => response?.statuses[0]?.currentLimit?.requestsPerUnit);
  }

  test('each accept connections', async () => {
    // A worker that answers late loses its turn to another, so the number of connections is not fixed.
    await waitFor('a decision of each worker', async () => {
      const [client] = clients(server, 1) as [RlsClient];
      await client.ask('d', [descriptor(['k=turn'])]);
      client.close();
      const deciding = server.log().flatMap(({ msg, worker }) => (msg === 'decision' ? [worker] : []));
      return new Set(deciding).size === 3;
    });
  });

  test('allow exactly the tokens of a bucket, and add up their metrics', async () => {
    const counts = () =>
      Promise.all(
        ['OK', 'OVER_LIMIT'].map((code) =>
          metric(server, `weir_decisions_total{domain="d",rule="k",code="${code}"}`),
        ),
      );
    const [ok = 0, overLimit] = await counts();
    const replies = await Promise.all(
      Array.from({ length: 120 }, (_, i) =>
        (connections[i % 6] as RlsClient).ask('d', [descriptor(['k=exact'])]),
      ),
    );
    expect(replies.map(({ code }) => code)).toEqual(replies.map(() => STATUS.OK));
    expect(replies.filter(({ response }) => response?.overallCode === CODE.OK)).toHaveLength(10);
    // A series appears with its first count.
    expect(await counts()).toEqual([ok + 10, (overLimit || 0) + 110]);
    expect(await metric(server, 'weir_workers')).toBe(3);
    expect(await metric(server, 'weir_store_up')).toBe(1);
  });

  test('log one line at the start, with their number', () => {
    const lines = server.log().filter(({ msg }) => msg === 'weir serves');
    expect(lines).toMatchObject([{ workers: 3, grpc: `127.0.0.1:${server.grpcPort}` }]);
    expect(lines[0]).not.toHaveProperty('worker');
  });

  test('are listed by /healthcheck?detail', async () => {
    expect(await workersOf(server)).toMatchObject([
      { id: 1, status: 'SERVING', storeUp: true },
      { id: 2, status: 'SERVING', storeUp: true },
      { id: 3, status: 'SERVING', storeUp: true },
    ]);
  });

  test('load a changed policy, and keep it when the next one is invalid', async () => {
    const path = server.policyPath as string;
    const replace = (text: string): void => {
      writeFileSync(`${path}.new`, text);
      renameSync(`${path}.new`, path);
    };
    replace(policy(77));
    await waitFor('the new limit in every worker', async () => (await limits(3)).join() === '77,77,77');
    replace(policy('many'));
    await waitFor(
      'the failed reload to count',
      async () => (await metric(server, 'weir_config_last_reload_successful')) === 0 || undefined,
    );
    expect(await limits(3)).toEqual([77, 77, 77]);
    expect(await metric(server, 'weir_config_reloads_total{result="success"}')).toBe(1);
  });

  test('are not ended by a SIGTERM that only they get', async () => {
    const workers = await workersOf(server);
    for (const { pid } of workers) process.kill(pid, 'SIGTERM');
    const client = new RlsClient(server.grpcPort);
    const { code } = await client.ask('d', [descriptor(['k=signal'])]);
    client.close();
    expect(code).toBe(STATUS.OK);
    expect(await workersOf(server)).toEqual(workers);
  });

  test('are replaced when they crash, and no count decreases', async () => {
    const [limit] = await limits(1);
    const restarts = await metric(server, 'weir_worker_restarts_total');
    const before = await metric(server, 'weir_decisions_total{domain="d",rule="k",code="OVER_LIMIT"}');
    const [victim, ...others] = await workersOf(server);
    process.kill(victim?.pid as number, 'SIGKILL');
    const after = await untilReplaced(victim?.pid);
    expect(after.map(({ pid }) => pid)).toEqual(expect.arrayContaining(others.map(({ pid }) => pid)));
    expect(await metric(server, 'weir_worker_restarts_total')).toBe(restarts + 1);
    expect(await metric(server, 'weir_decisions_total{domain="d",rule="k",code="OVER_LIMIT"}')).toBe(before);
    expect(server.log()).toContainEqual(
      expect.objectContaining({
        level: 'error',
        how: 'SIGKILL',
        msg: expect.stringContaining('weir starts a replacement'),
      }),
    );
    // The replacement uses the policy in effect.
    expect(await limits(6)).toEqual(Array.from({ length: 6 }, () => limit));
  });
});

describe('several workers end', () => {
  test('with the primary after a drain on SIGTERM, without waiting for the replacement of a crashed one', async () => {
    const server = await start({ SHUTDOWN_DRAIN_DELAY: '1s' });
    const workers = await workersOf(server);
    process.kill(workers[2]?.pid as number, 'SIGKILL');
    await waitFor('the pause before the replacement', async () => (await workersOf(server)).length === 2);
    // The pause ends while the other workers drain; a worker forked then would delay the end until it is killed.
    expect(await server.stop()).toEqual({ code: 0, signal: null });
    await gone(workers.map(({ pid }) => pid));
    expect(server.log().filter(({ msg }) => msg === 'draining')).toHaveLength(2);
    expect(server.log().at(-1)).toMatchObject({ msg: 'drained' });
  });

  test('when the primary is killed', async () => {
    const server = await start();
    const pids = (await workersOf(server)).map(({ pid }) => pid);
    await server.stop('SIGKILL');
    await gone(pids);
  });
});

test(
  'an output that nobody reads, a socket that the processes share, holds nobody up, the end of one of ' +
    'them included',
  async () => {
    const server = await startWeir({
      policy: policy(10),
      env: { REDIS_URL: `127.0.0.1:${redis.port}`, WORKERS: '2', LOG_LEVEL: 'debug' },
      readsOutput: false,
    });
    const client = new RlsClient(server.grpcPort);
    // More lines than the buffer of the socket holds.
    for (let round = 0; round < 40; round++) {
      const calls = Array.from({ length: 50 }, () => client.ask('d', [descriptor([`k=${'x'.repeat(200)}`])]));
      for (const { response } of await Promise.all(calls)) expect(response).toBeDefined();
    }
    expect(await server.stop()).toEqual({ code: 0, signal: null });
  },
);
