/*
 * Runs the set-up of deploy/reference-example behind a real Envoy, with a server that has only the variables of
 * envoyproxy/ratelimit. Windows of a minute become windows of a year, so that none ends during a test. One test edits
 * the policy in place to use windows of a second.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';

import { startTarget, type Target } from '../integration/reference/target.js';
import { type EnvoyServer, startEnvoy, validateEnvoy, withChanges } from '../support/envoy/envoy.js';
import { LONG_TIMEOUTS } from '../support/envoy/stack.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { headerOf, httpRequest } from '../support/process/http-client.js';
import { TempDir } from '../support/process/temp-dir.js';
import { repositoryRoot } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';
import { redisClient } from '../support/redis/redis-client.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { type StatsdListener, startStatsdListener } from '../support/statsd/statsd-listener.js';

const EXAMPLE = 'deploy/reference-example';
const POLICY = readFileSync(join(repositoryRoot, EXAMPLE, 'ratelimit/config/shop.yaml'), 'utf8');

let folder: TempDir;
let redis: RedisServer;
let statsd: StatsdListener;
let target: Target;
let envoy: EnvoyServer;
let rls: RlsClient;
const upstreams: Server[] = [];

async function startUpstream(says: string): Promise<number> {
  const server = createServer((_, answer) => answer.end(says));
  upstreams.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

beforeAll(async () => {
  folder = new TempDir();
  folder.write('ratelimit/config/shop.yaml', withChanges(POLICY, [['unit: minute', 'unit: year']]));
  redis = await startRedis();
  statsd = await startStatsdListener();
  target = await startTarget({
    USE_STATSD: 'true',
    STATSD_HOST: '127.0.0.1',
    STATSD_PORT: String(statsd.port),
    STATS_FLUSH_INTERVAL: '50ms',
    LOG_LEVEL: 'error',
    REDIS_SOCKET_TYPE: 'tcp',
    REDIS_URL: `127.0.0.1:${redis.port}`,
    RUNTIME_ROOT: folder.path,
    RUNTIME_SUBDIRECTORY: 'ratelimit',
    RUNTIME_WATCH_ROOT: 'false',
    RUNTIME_IGNOREDOTFILES: 'true',
    RESPONSE_DYNAMIC_METADATA: 'true',
  });
  rls = new RlsClient(target.grpcPort);
  const first = await startUpstream('from the first');
  const second = await startUpstream('from the second');
  envoy = await startEnvoy({
    file: `${EXAMPLE}/envoy.yaml`,
    weirPort: target.grpcPort,
    upstreamPort: first,
    changes: [
      ['address: second-upstream, port_value: 9091', `address: 127.0.0.1, port_value: ${second}`],
      ...LONG_TIMEOUTS,
    ],
  });
});
afterAll(async () => {
  await target?.stop();
  for (const server of upstreams) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** Each test begins with empty windows. */
beforeEach(async () => {
  const client = redisClient(redis.port);
  await client.flushall();
});

const get = (path: string, headers: Record<string, string> = {}) =>
  httpRequest(envoy.port, path, { headers });

/** Returns the statuses of sequential, equal requests. */
async function statuses(
  count: number,
  path: string,
  headers: Record<string, string> = {},
): Promise<number[]> {
  const seen: number[] = [];
  for (; count > 0; count--) seen.push((await get(path, headers)).status);
  return seen;
}

/** Waits until a pool has been charged; charges arrive after the response. */
async function waitForCharge(pool: string, left: number | 'over'): Promise<void> {
  await waitFor(`pool ${pool} to have ${left}`, async () => {
    const { response } = await rls.ask('shop', [descriptor([`pool=${pool}`], { hitsAddend: 0 })]);
    const status = response?.statuses[0];
    return left === 'over' ? status?.code === 2 : status?.code === 1 && status.limitRemaining === left;
  });
}

test('the bootstrap is valid', async () => {
  const { good, output } = await validateEnvoy(
    readFileSync(join(repositoryRoot, EXAMPLE, 'envoy.yaml'), 'utf8'),
  );
  expect({ good, output }).toMatchObject({ good: true });
});

test('allows requests within the limit', async () => {
  expect(await statuses(1, '/tools-and-plans', { client: 'ann', tool: 'importer-beta' })).toEqual([200]);
  expect(await statuses(3, '/client', { client: 'ann' })).toEqual([200, 200, 429]);
  expect(await statuses(2, '/clusters')).toEqual([200, 429]);
  expect(await statuses(2, '/client')).toEqual([200, 200]);
});

test('denies the fourth request of a limit of three, with the headers of Envoy', async () => {
  const headers = { client: 'ann', tool: 'importer' };
  expect(await statuses(3, '/tools-and-plans', headers)).toEqual([200, 200, 200]);
  const refused = await get('/tools-and-plans', headers);
  expect(refused.status).toBe(429);
  expect(headerOf(refused, 'x-ratelimit-limit')).toMatch(/^3, 3;w=\d+$/);
  expect(headerOf(refused, 'x-ratelimit-remaining')).toBe('0');
  expect(Number(headerOf(refused, 'x-ratelimit-reset'))).toBeGreaterThan(0);
  expect(await statuses(1, '/tools-and-plans', { ...headers, client: 'bob' })).toEqual([200]);
});

test('shadow mode allows everything and reports 0 remaining', async () => {
  const headers = { client: 'ann', tool: 'importer-beta' };
  expect(await statuses(5, '/tools-and-plans', headers)).toEqual([200, 200, 200, 200, 200]);
  const answer = await get('/tools-and-plans', headers);
  expect([answer.status, headerOf(answer, 'x-ratelimit-remaining')]).toEqual([200, '0']);
  const stat = 'ratelimit.service.rate_limit.shop.client.tool_importer-beta';
  await waitFor('the shadowed hits', () => statsd.counter(`${stat}.shadow_mode`) === 3);
});

describe('replaced limits', () => {
  test('allows a closed plan whose limit is replaced', async () => {
    const closed = { client: 'ann', plan: 'closed' };
    expect(await statuses(1, '/tools-and-plans', closed)).toEqual([429]);
    expect(await statuses(1, '/plans-and-clusters', { ...closed, from: 'gateway', to: 'catalogue' })).toEqual(
      [429],
    );
    expect(await statuses(3, '/plans-and-clusters', { ...closed, from: 'gateway', to: 'support' })).toEqual([
      200, 200, 429,
    ]);
  });

  test('leaves the replaced limit unchanged', async () => {
    const trial = { client: 'ann', plan: 'trial' };
    const replaced = { ...trial, from: 'gateway', to: 'checkout' };
    expect(await statuses(3, '/plans-and-clusters', replaced)).toEqual([200, 200, 429]);
    const elsewhere = { ...trial, from: 'gateway', to: 'nowhere' };
    expect(await statuses(2, '/plans-and-clusters', elsewhere)).toEqual([200, 429]);
    expect(await statuses(1, '/plans-and-clusters', replaced)).toEqual([429]);
  });

  test('replaces several limits at once', async () => {
    const all = { client: 'ann', plan: 'trial', from: 'gateway', to: 'search', contract: 'signed' };
    expect(await statuses(5, '/contracts', all)).toEqual([200, 200, 200, 200, 429]);
    expect(await statuses(2, '/tools-and-plans', { client: 'bob', plan: 'trial' })).toEqual([200, 429]);
    const search = { client: 'eve', plan: 'any', from: 'gateway', to: 'search' };
    expect(await statuses(3, '/plans-and-clusters', search)).toEqual([200, 200, 429]);
    expect(await statuses(1, '/contracts', all)).toEqual([429]);
  });
});

test('statistics carry the value of a rule with detailed_metric', async () => {
  expect(await statuses(3, '/campaign', { campaign: 'winter' })).toEqual([200, 200, 429]);
  const under = () => statsd.countersUnder('ratelimit.service.rate_limit.shop.campaign_winter.');
  await waitFor('the refused hit', () => under()['over_limit'] === 1);
  expect(under()).toEqual({ total_hits: 3, within_limit: 2, near_limit: 1, over_limit: 1 });
});

test('a quota denies when all pools are used up', async () => {
  expect(await statuses(3, '/quota')).toEqual([200, 200, 429]);
});

test('a quota that is charged afterwards allows one more request', async () => {
  const left = [1, 0, 'over'] as const;
  for (const after of left) {
    expect(await statuses(1, '/token-quota')).toEqual([200]);
    await waitForCharge('second', after);
  }
  expect(await statuses(1, '/token-quota')).toEqual([429]);
});

test('with a pool for each of several upstreams, the upstream with remaining hits answers', async () => {
  const steps = [
    ['first', 0],
    ['first', 'over'],
    ['second', 1],
    ['second', 0],
    ['second', 'over'],
  ] as const;
  for (const [pool, left] of steps) {
    const { status, body } = await get('/pools');
    expect([status, body]).toEqual([200, `from the ${pool}`]);
    await waitForCharge(pool, left);
  }
  expect(await statuses(1, '/pools')).toEqual([429]);
});

test('an edited policy is loaded, and a quota is available again when its window has ended', async () => {
  const path = folder.join('ratelimit/config/shop.yaml');
  writeFileSync(folder.join('shop.new'), withChanges(POLICY, [['unit: minute', 'unit: second']]));
  renameSync(folder.join('shop.new'), path);
  const answers = async () => (await statuses(6, '/quota')).join(' ');
  // A limit of two denies four of six requests within a second, and fewer if the window ends meanwhile.
  await waitFor('the windows of a second to refuse', async () => (await answers()).endsWith('429'));
  await waitFor('the next window', async () => (await get('/quota')).status === 200);
});
