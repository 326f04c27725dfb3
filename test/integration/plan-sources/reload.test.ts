/* Loads of policies whose tables are in Redis. */
import { afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { FilePolicyProvider, type ReloadOutcome } from '../../../src/config/files/file-policy-provider.js';
import { type LoadedPolicies, loadPolicies } from '../../../src/config/files/load-policies.js';
import { PlanSources } from '../../../src/config/sources/plan-sources.js';
import { formatProblem } from '../../../src/config/yaml/config-problem.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { waitFor } from '../../support/process/wait-for.js';
import { redisClient } from '../../support/redis/redis-client.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';

let server: RedisServer;
let redis: Redis;
let dir: TempDir;
let provider: FilePolicyProvider | undefined;
let outcomes: ReloadOutcome[];

beforeAll(async () => {
  server = await startRedis();
  redis = redisClient(server.port);
});
beforeEach(async () => {
  await redis.hset('plans', 'acme', '{"calls":10}');
  dir = new TempDir();
  outcomes = [];
});
afterEach(async () => {
  provider?.close();
  server.resume();
  await redis.flushall();
});

/** Returns a provider of a policy without plans. */
function provide(firstAnswersMs: number): FilePolicyProvider {
  const places = [dir.write('policy.yaml', 'domain: shop\n')];
  const sources = new PlanSources({
    passwordFile: '',
    pollMs: 1,
    nowMicros: () => 0,
    firstAnswersMs,
    log: () => {},
  });
  const load = async (previous?: LoadedPolicies): Promise<LoadedPolicies> =>
    loadPolicies(places, { rows: sources.rows() }, previous);
  const initial = loadPolicies(places);
  provider = new FilePolicyProvider(places, initial, { load, close: () => {} }, { sources });
  provider.onOutcome((outcome) => outcomes.push(outcome));
  return provider;
}

function nameTable(from = `redis://127.0.0.1:${server.port}/plans`, unit = 'year'): void {
  dir.write(
    'policy.yaml',
    `domain: shop
plans: { by: tenant, from: "${from}" }
descriptors: [{ key: tenant, rate_limit: { unit: ${unit}, requests_per_unit: { plan: calls, default: 1 } } }]
`,
  );
}

const rowsIn = ({ policySet }: Pick<ReloadOutcome, 'policySet'>): number | undefined =>
  policySet.domains.get('shop')?.plans?.rowCount;

test('waits for the rows of the new address, so that the reload does not fail', async () => {
  const provided = provide(60_000);
  server.pause();
  nameTable();
  const reloaded = provided.reload('change');
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(outcomes).toEqual([]);
  server.resume();
  expect(await reloaded).toMatchObject({ kind: 'loaded', errors: [], warnings: [] });
  expect(outcomes.map(rowsIn)).toEqual([1]);
});

test('loads the domain without rows while there are none, and reloads it when they arrive', async () => {
  await redis.del('plans');
  const provided = provide(60_000);
  provided.start();
  await provided.idle();
  nameTable();
  const reloaded = await provided.reload('change');
  expect(reloaded).toMatchObject({ kind: 'loaded', errors: [], domains: [{ state: 'ok' }] });
  expect(reloaded.warnings.map(formatProblem)).toEqual([
    expect.stringContaining('weir has no rows from this address yet'),
    expect.stringContaining('all customers have the limits of customers without a row until rows arrive'),
  ]);
  expect(rowsIn(reloaded)).toBe(0);
  await redis.hset('plans', 'acme', '{"calls":10}');
  await waitFor('the rows', () => rowsIn(outcomes.at(-1) as ReloadOutcome) === 1);
  expect(outcomes.at(-1)).toMatchObject({ kind: 'loaded', warnings: [] });
});

test('does not wait for a Redis that does not answer in time', async () => {
  const provided = provide(1);
  server.pause();
  nameTable();
  const reloaded = await provided.reload('change');
  expect([reloaded.kind, rowsIn(reloaded)]).toEqual(['loaded', 0]);
});

test('a reload of the policy keeps rows in memory while Redis is away, also with another unit', async () => {
  const provided = provide(60_000);
  nameTable();
  await provided.reload('change');
  server.pause();
  nameTable(undefined, 'day');
  const reloaded = await provided.reload('change');
  expect([reloaded.kind, rowsIn(reloaded)]).toEqual(['loaded', 1]);
  expect(reloaded.warnings).toEqual([]);
});

test('a new address that has no rows does not remove those of the old one', async () => {
  const provided = provide(60_000);
  nameTable();
  await provided.reload('change');
  nameTable(`redis://127.0.0.1:${server.port}/none`);
  const reloaded = await provided.reload('change');
  expect(reloaded).toMatchObject({ kind: 'failed', domains: [{ state: 'kept' }] });
  expect(rowsIn(reloaded)).toBe(1);
});

test('the wait ends when weir stops', async () => {
  const provided = provide(60_000);
  server.pause();
  nameTable();
  const reloaded = provided.reload('change');
  await new Promise((resolve) => setTimeout(resolve, 50));
  provided.close();
  expect(await reloaded).toMatchObject({ kind: 'unchanged' });
});
