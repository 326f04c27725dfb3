/*
 * Kills, pauses and restarts Redis during calls: no call exceeds its deadline, every rule answers according to its
 * failure policy, nothing crashes, and the service recovers by itself.
 */
import { writeFileSync } from 'node:fs';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { STATUS } from '../../src/grpc/grpc-server.js';
import { RlsClient, type RlsReply } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';
import { metric } from '../support/weir/workers.js';

const bucket = (key: string, policy: string) =>
  `  - { key: ${key}, rate_limit: { on_store_failure: ${policy}, token_bucket: { max_tokens: 1000000, ` +
  'fill_interval: 1m } } }';
const POLICY = `
domain: d
descriptors:
${bucket('error', 'error')}
${bucket('allow', 'allow')}
${bucket('deny', 'deny')}
  - { key: looks, shadow_mode: true, rate_limit: { on_store_failure: error, token_bucket: { max_tokens: 1, fill_interval: 1h } } }
  - { key: local, rate_limit: { on_store_failure: local, token_bucket: { max_tokens: 3, fill_interval: 1h } } }
`;
/** Far longer than REDIS_TIMEOUT, so that calls do not reach it even on a busy machine. */
const TIMEOUT_MS = 5000;

/** Repeats calls until it is stopped. */
class Traffic {
  readonly replies: RlsReply[] = [];
  #stopped = false;
  readonly #done: Promise<unknown>;

  constructor(client: RlsClient, key: string, workers: number) {
    const work = async () => {
      while (!this.#stopped) {
        this.replies.push(await client.ask('d', [descriptor([`${key}=x`])], { timeoutMs: TIMEOUT_MS }));
        // Gives the other sockets of this process their turn.
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    this.#done = Promise.all(Array.from({ length: workers }, work));
  }

  async stop(): Promise<readonly RlsReply[]> {
    this.#stopped = true;
    await this.#done;
    return this.replies;
  }
}

describe('while Redis is unavailable', () => {
  let redis: RedisServer;
  let server: WeirServer;
  let client: RlsClient;
  let health: () => Promise<number>;

  beforeAll(async () => {
    redis = await startRedis();
    server = await startWeir({
      policy: POLICY,
      env: { REDIS_URL: `127.0.0.1:${redis.port}`, REDIS_TIMEOUT: '150ms' },
    });
    client = new RlsClient(server.grpcPort);
    health = async () => (await httpRequest(server.httpPort, '/healthcheck')).status;
  });

  const ask = (key: string) => client.ask('d', [descriptor([`${key}=x`])], { timeoutMs: TIMEOUT_MS });
  const decidedByRedis = async () => {
    const { response } = await ask('allow');
    return response?.statuses[0]?.currentLimit !== undefined;
  };

  beforeEach(async () => {
    await waitFor('Redis to decide', async () => (await decidedByRedis()) || undefined);
  });
  afterEach(() => {
    expect(server.process.isRunning()).toBe(true);
  });

  let outages = 0;

  async function expectPolicies(): Promise<void> {
    outages++;
    await waitFor('the failure policies to answer', async () => !(await decidedByRedis()) || undefined);
    expect(await ask('error')).toMatchObject({
      code: STATUS.UNAVAILABLE,
      details: 'rate limit store unavailable',
    });
    expect((await ask('allow')).response).toMatchObject({ overallCode: CODE.OK });
    expect((await ask('looks')).response).toMatchObject({ overallCode: CODE.OK });
    expect((await ask('deny')).response).toMatchObject({
      overallCode: CODE.OVER_LIMIT,
      statuses: [{ code: CODE.OVER_LIMIT, limitRemaining: 0, durationUntilResetSeconds: 1 }],
    });
    // A new name, because local buckets of the previous outage would still exist.
    const asked = [descriptor([`local=${outages}`])];
    const local = [];
    for (let index = 0; index < 4; index++) {
      const { response } = await client.ask('d', asked, { timeoutMs: TIMEOUT_MS });
      local.push(response?.overallCode);
    }
    expect(local).toEqual([CODE.OK, CODE.OK, CODE.OK, CODE.OVER_LIMIT]);
    // Health does not change, or Envoy would eject every replica at once.
    expect(await health()).toBe(200);
  }

  async function expectRecovery(): Promise<void> {
    await waitFor('Redis to decide again', async () => (await decidedByRedis()) || undefined);
    // The three hits that were allowed without Redis are forgotten.
    const { response } = await client.ask('d', [descriptor([`local=${outages}`])], { timeoutMs: TIMEOUT_MS });
    expect(response).toMatchObject({ overallCode: CODE.OK, statuses: [{ limitRemaining: 2 }] });
  }

  function expectAllDecided(replies: readonly RlsReply[]): void {
    expect(replies.length).toBeGreaterThan(0);
    // The failure policy answered before any deadline.
    expect(replies.filter(({ code }) => code === STATUS.DEADLINE_EXCEEDED)).toEqual([]);
    expect(replies.filter(({ code }) => code !== STATUS.OK)).toEqual([]);
  }

  test('weir recovers from a Redis that is killed, then restarted empty', async () => {
    const traffic = new Traffic(client, 'allow', 20);
    await redis.kill();
    await expectPolicies();
    await redis.restart();
    await expectRecovery();
    expectAllDecided(await traffic.stop());
  });

  test('weir recovers from a Redis that is paused, then continued', async () => {
    const traffic = new Traffic(client, 'allow', 20);
    redis.pause();
    await expectPolicies();
    redis.resume();
    await expectRecovery();
    expectAllDecided(await traffic.stop());
  });

  test('the log reports it once, and metrics count it', async () => {
    const log = server.log().map(({ msg }) => String(msg));
    const outages = log.filter((line) => line.includes('cannot be used')).length;
    expect(outages).toBeGreaterThanOrEqual(1);
    expect(outages).toBeLessThan(10);
    expect(log.filter((line) => line.includes('is up')).length).toBeGreaterThanOrEqual(3);
    const { body } = await httpRequest(server.httpPort, '/metrics');
    expect(body).toMatch(/weir_store_failure_answers_total\{policy="deny"\} [1-9]/);
    expect(body).toMatch(/weir_store_errors_total\{reason="disconnected"\} [1-9]/);
    expect(body).toContain('weir_store_up 1');
  });
});

describe('starting without Redis', () => {
  const start = (policy: string, port: number, env = {}) =>
    startWeir({ policy, env: { REDIS_URL: `127.0.0.1:${port}`, ...env }, untilHealthy: false });

  test('reports NOT_SERVING until Redis is reached, then SERVING whatever happens to Redis', async () => {
    const redis = await startRedis();
    await redis.kill();
    const server = await start(POLICY, redis.port);
    const client = new RlsClient(server.grpcPort);
    const health = () => httpRequest(server.httpPort, '/healthcheck').then(({ status }) => status);
    await waitFor('the start line', () => server.log().some(({ msg }) => msg === 'weir serves') || undefined);
    expect(await health()).toBe(500);
    expect(await metric(server, 'weir_serving')).toBe(0);
    expect(await client.ask('d', [descriptor(['error=x'])])).toMatchObject({ code: STATUS.UNAVAILABLE });
    await redis.restart();
    await waitFor('health', async () => (await health()) === 200 || undefined);
    expect(await metric(server, 'weir_serving')).toBe(1);
    await redis.kill();
    await waitFor('the loss', async () => {
      const { body } = await httpRequest(server.httpPort, '/healthcheck?detail');
      return JSON.parse(body).storeUp === false || undefined;
    });
    expect(await health()).toBe(200);
    client.close();
    await server.stop();
  });

  test('reports SERVING while no rule denies, until a schedule activates one', async () => {
    const redis = await startRedis();
    await redis.kill();
    const node = (key: string, more: string) =>
      `  - { key: ${key}, ${more}, rate_limit: { unit: day, requests_per_unit: 1 } }`;
    const policyIn = (seconds: number) => {
      const active = new Date((Math.ceil(Date.now() / 1000) + seconds) * 1000).toISOString();
      const soon = node('soon', `phase: { active: '${active}' }`);
      return `domain: d\ndescriptors:\n${soon}\n${node('shadow', 'shadow_mode: true')}\n`;
    };
    const server = await start(policyIn(3600), redis.port);
    const client = new RlsClient(server.grpcPort);
    const health = async () => (await httpRequest(server.httpPort, '/healthcheck')).status;
    await waitFor('health', async () => (await health()) === 200 || undefined);
    expect((await client.ask('d', [descriptor(['shadow=x'])])).response).toMatchObject({
      overallCode: CODE.OK,
    });
    writeFileSync(server.policyPath as string, policyIn(2));
    await waitFor('no health', async () => (await health()) === 500 || undefined);
    expect(await client.ask('d', [descriptor(['soon=x'])])).toMatchObject({ code: STATUS.UNAVAILABLE });
    await redis.restart();
    await waitFor('health again', async () => (await health()) === 200 || undefined);
    client.close();
    await server.stop();
  });
});
