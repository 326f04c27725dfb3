/* A table of plans in Redis, behind Envoy: three weirs with two workers each share another Redis. */
import type { Server } from 'node:http';
import { beforeAll, expect, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { fromHeader, startRouteEnvoy } from '../support/envoy/route-envoy.js';
import { startUpstream } from '../support/envoy/stack.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';
import { redisClient } from '../support/redis/redis-client.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';
import { metric, untilAllServe } from '../support/weir/workers.js';

const REPLICAS = [0, 1, 2];
/** Connections to each weir, which its workers accept in turn. */
const CONNECTIONS = 4;

let upstream: { server: Server; port: number };
let store: RedisServer;
let table: RedisServer;
let rows: Redis;
let weirs: WeirServer[];
let envoy: { port: number; stop(): Promise<unknown> };

const address = (): string => `redis://127.0.0.1:${table.port}/customers`;

async function writeTable(calls: number): Promise<void> {
  await rows.hset('customers', 'acme', JSON.stringify({ calls }), 'globex', '{"calls":1}');
  await rows.incr('customers:version');
}

async function startReplica(ports?: WeirServer): Promise<WeirServer> {
  const policy =
    `domain: shop\nplans: { by: tenant, from: "${address()}" }\n` +
    'descriptors: [{ key: tenant, rate_limit: { unit: year, requests_per_unit: { plan: calls, default: 1 } } }]\n';
  const env = { REDIS_URL: `127.0.0.1:${store.port}`, WORKERS: '2', PLANS_POLL_INTERVAL: '200ms' };
  const weir = await startWeir({ policy, env, ...(ports && { ports }) });
  await untilAllServe(weir);
  return weir;
}

beforeAll(async () => {
  [store, table] = await Promise.all([startRedis(), startRedis()]);
  rows = redisClient(table.port);
  rows.on('error', () => {});
  await writeTable(10);
  upstream = await startUpstream();
  weirs = await Promise.all(REPLICAS.map(() => startReplica()));
  envoy = await startRouteEnvoy({
    domain: 'shop',
    weirPort: weirs.map(({ grpcPort }) => grpcPort),
    upstreamPort: upstream.port,
    routes: [
      {
        path: '/',
        rateLimits: [{ actions: [fromHeader('x-tenant', 'tenant')] }],
        place: 'virtual_host',
      },
    ],
  });
});

/** Returns the limit of acme in each connection to a weir. */
async function limitsOf({ grpcPort }: WeirServer): Promise<readonly unknown[]> {
  const clients = Array.from({ length: CONNECTIONS }, () => new RlsClient(grpcPort));
  const found: unknown[] = [];
  // In sequence, because a worker has its turn once it has accepted the previous connection.
  for (const client of clients) {
    const { response } = await client.ask('shop', [{ ...descriptor(['tenant=acme']), hitsAddend: 0 }]);
    found.push(response?.statuses[0]?.currentLimit?.requestsPerUnit);
    client.close();
  }
  return found;
}

const untilAllHave = (calls: number): Promise<unknown> =>
  waitFor(`a limit of ${calls} in all workers`, async () => {
    const limits = await Promise.all(weirs.map(limitsOf));
    return limits.flat().every((limit) => limit === calls);
  });

/** Sends requests through Envoy, and returns how many passed. */
async function passed(count: number): Promise<number> {
  let ok = 0;
  for (let i = 0; i < count; i++) {
    const { status } = await httpRequest(envoy.port, '/', { headers: { 'x-tenant': 'acme' } });
    if (status === 200) ok++;
  }
  return ok;
}

test('a changed row is in effect in all workers, and together they allow the larger limit', async () => {
  await untilAllHave(10);
  expect(await passed(20)).toBe(10);
  await writeTable(100);
  await untilAllHave(100);
  expect(await passed(120)).toBe(90);
});

test('a Redis that is away changes nothing, and after a restart nobody has a row until it is back', async () => {
  const [first] = weirs as [WeirServer];
  await table.kill();
  const failures = `weir_plan_source_failures_total{source="${address()}",reason="connection"}`;
  await waitFor('several failures', async () => (await metric(first, failures)) > 2);
  // The first poll may end with a reset, and the others are refused. Each reason is logged once.
  const failed = first.log().filter(({ msg }) => String(msg).includes('could not be read'));
  expect(failed.length).toBeGreaterThan(0);
  expect(new Set(failed.map(({ msg }) => msg)).size).toBe(failed.length);
  expect(await metric(first, 'weir_plan_rows{domain="shop"}')).toBe(2);
  expect(await metric(first, `weir_plan_source_age_seconds{source="${address()}"}`)).toBeLessThan(60);
  await first.stop();
  const restarted = await startReplica(first);
  weirs[0] = restarted;
  expect(await limitsOf(restarted)).toEqual(new Array(CONNECTIONS).fill(1));
  expect(await metric(restarted, 'weir_plan_rows{domain="shop"}')).toBe(0);
  expect(await metric(restarted, `weir_plan_source_age_seconds{source="${address()}"}`)).toBeGreaterThan(0);
  await table.restart();
  await writeTable(100);
  await untilAllHave(100);
});
