import { beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { BucketStore, Take } from '../../../src/limiter/bucket-store.js';
import type { Rate } from '../../../src/limiter/rate.js';
import type { CompiledPolicy } from '../../../src/policy/compiled-policy.js';
import { expectAtMost, expectEqual } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { takeItem } from '../../support/limiter/take-items.js';
import { memoryBench, RedisBench, type TestBench, takeFrom } from '../../support/limiter/test-stores.js';
import { entries, policyOf } from '../../support/policy/policies.js';
import { type RedisCluster, startCluster } from '../../support/redis/cluster.js';
import { openWholeCluster } from '../../support/redis/cluster-stores.js';

/*
 * Rows change while requests arrive, and several replicas with different versions of the table share the buckets.
 */

/** Number of customers so far. Each run has its own. */
let run = 0;

const step = fc.record({
  replica: fc.integer({ min: 0, max: 2 }),
  /** Whether the replica reads the next version first. */
  reloads: fc.oneof({ arbitrary: fc.constant(false), weight: 3 }, fc.constant(true)),
  waitMillis: fc.oneof({ arbitrary: fc.constant(0), weight: 3 }, fc.integer({ min: 0, max: 9_000 })),
  hits: fc.integer({ min: 1, max: 4 }),
});
const steps = fc.array(step, { minLength: 10, maxLength: 80 });

/** Returns the versions of a table: the limit, or the list of limits, and the rows of the customer. */
function versionsOf(
  limit: string,
  customer: string,
  rows: readonly string[],
  columns: string,
): CompiledPolicy[] {
  const limits = limit.startsWith('[') ? `rate_limits: ${limit}` : `rate_limit: { ${limit} }`;
  const policy = `domain: d\nplans: { by: tenant, from: rows.csv }\ndescriptors: [{ key: tenant, ${limits} }]`;
  return rows.map((row) =>
    policyOf(policy, { 'rows.csv': `tenant,${columns}\n${customer},${row}\nother,${row}\n` }),
  );
}

/** Returns the takes of a customer's request. If there are several, they are a chain (`then`). */
function takesOf(policy: CompiledPolicy, customer: string, hits: number): readonly Take[] {
  const { rules, keys, hashTagLength } = policy.match(entries(`tenant=${customer}`));
  return rules.map(({ rate, nextLimit }, i) => {
    const enforcement = nextLimit === '' ? 'enforce' : 'spill';
    return { ...takeItem(keys[i] as string, rate as Rate, { hits, enforcement }), hashTagLength };
  });
}

interface Admitted {
  readonly version: number;
  /** The limit of the chain that paid. */
  readonly limit: number;
  readonly rate: Rate;
  readonly hits: number;
  readonly atMicros: number;
}

/** Sends the requests of the steps, and returns those that were allowed. */
async function admitted(
  versions: readonly CompiledPolicy[],
  customer: string,
  calls: typeof steps extends fc.Arbitrary<infer Steps> ? Steps : never,
  servers: readonly BucketStore[],
  clock: FakeClock,
): Promise<readonly Admitted[]> {
  const version = [0, 0, 0];
  const found: Admitted[] = [];
  let atMicros = 0;
  for (const { replica, reloads, waitMillis, hits } of calls) {
    // Buckets in memory have a single replica.
    const at = servers.length === 1 ? 0 : replica;
    clock.advance(waitMillis * 1000);
    atMicros += waitMillis * 1000;
    if (reloads) version[at] = Math.min((version[at] as number) + 1, versions.length - 1);
    const takes = takesOf(versions[version[at] as number] as CompiledPolicy, customer, hits);
    const outcomes = await takeFrom(servers[at % servers.length] as BucketStore, ...takes);
    const limit = outcomes.findIndex(({ overLimit }) => !overLimit);
    if (limit < 0) continue;
    const { rate } = takes[limit] as Take;
    found.push({ version: version[at] as number, limit, rate, hits, atMicros });
  }
  return found;
}

/** Expects that a bucket of `most` tokens that fills in 10 s would have allowed all of the requests. */
function expectRefills(found: readonly Admitted[], most: number): void {
  for (const [from, { atMicros: start }] of found.entries()) {
    let sum = 0;
    for (const { hits, atMicros } of found.slice(from)) {
      sum += hits;
      expectAtMost(sum, most * (1 + (atMicros - start) / 10_000_000));
    }
  }
}

const sumOf = (found: readonly Admitted[]): number => found.reduce((sum, { hits }) => sum + hits, 0);

/** Buckets on three masters. */
function clusterBench(): Pick<TestBench, 'clock' | 'start' | 'open'> {
  const clock = FakeClock.ofRedis();
  let cluster: RedisCluster | undefined;
  return {
    clock,
    start: async () => {
      cluster = await startCluster({ masters: 3 });
    },
    open: async () => {
      const { url } = cluster as RedisCluster;
      return (await openWholeCluster(url, { clock: () => clock.wallMicros() })).store;
    },
  };
}

describe.each([
  ['memory', memoryBench()],
  ['Redis', new RedisBench('redis-server')],
  ['three masters', clusterBench()],
] as const)('changed rows in %s', (name, bench) => {
  let servers: readonly BucketStore[];
  beforeAll(async () => {
    await bench.start();
    servers = name === 'memory' ? [await bench.open()] : [await bench.open(), await bench.open()];
  });

  const numbers = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 2, maxLength: 4 });

  test('allow at most the largest of the limits, if all need the same time to fill', async () => {
    await fc.assert(
      fc.asyncProperty(numbers, steps, async (bursts, calls) => {
        const customer = `c${run++}`;
        const limit =
          'token_bucket: { max_tokens: { plan: n, default: 1 }, tokens_per_fill: { plan: n, default: 1 }, ' +
          'fill_interval: 10s }';
        const versions = versionsOf(limit, customer, bursts.map(String), 'n');
        const found = await admitted(versions, customer, calls, servers, bench.clock);
        expectRefills(found, Math.max(...bursts));
      }),
      runs(300),
    );
  });

  test('allow at most the sum of the limits, if they need different times to fill', async () => {
    const rows = fc.array(fc.tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 20 })), {
      minLength: 2,
      maxLength: 3,
    });
    await fc.assert(
      fc.asyncProperty(rows, steps, async (limits, calls) => {
        const customer = `c${run++}`;
        const limit =
          'token_bucket: { max_tokens: { plan: n, default: 1 }, fill_interval: { plan: t, default: 1s } }';
        const cells = limits.map(([burst, seconds]) => `${burst},${seconds}s`);
        const found = await admitted(
          versionsOf(limit, customer, cells, 'n,t'),
          customer,
          calls,
          servers,
          bench.clock,
        );
        const end = found.at(-1)?.atMicros ?? 0;
        const sums = new Map<number, number>();
        for (const { version, rate, hits } of found) {
          if (rate.kind !== 'token_bucket') throw new Error('not a bucket');
          sums.set(version, (sums.get(version) ?? 0) + hits);
          expectAtMost(sums.get(version), rate.maxTokens + end / rate.fillIntervalMicros);
        }
      }),
      runs(300),
    );
  });

  test('allow at most the largest of the limits in a window', async () => {
    await fc.assert(
      fc.asyncProperty(numbers, steps, async (limits, calls) => {
        const customer = `c${run++}`;
        const limit = 'unit: year, requests_per_unit: { plan: n, default: 1 }';
        const versions = versionsOf(limit, customer, limits.map(String), 'n');
        const found = await admitted(versions, customer, calls, servers, bench.clock);
        expectAtMost(sumOf(found), Math.max(...limits));
      }),
      runs(300),
    );
  });

  test('allow at most the largest of each limit in a chain', async () => {
    const number = fc.integer({ min: 1, max: 12 });
    const chain =
      '[{ name: plan, then: month, token_bucket: { max_tokens: { plan: n, default: 1 }, ' +
      'tokens_per_fill: { plan: n, default: 1 }, fill_interval: 10s } }, ' +
      '{ name: month, then: bought, unit: year, requests_per_unit: { plan: m, default: 1 } }, ' +
      '{ name: bought, token_bucket: { max_tokens: { plan: b, default: 1 }, ' +
      'tokens_per_fill: { plan: b, default: 1 }, fill_interval: 8760h } }]';
    const rows = fc.array(fc.tuple(number, number, number), { minLength: 2, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(rows, steps, async (cells, calls) => {
        const customer = `c${run++}`;
        const versions = versionsOf(chain, customer, cells.map(String), 'n,m,b');
        const found = await admitted(versions, customer, calls, servers, bench.clock);
        const [plan, month, bought] = [0, 1, 2].map((at) => found.filter(({ limit }) => limit === at));
        const most = (at: 0 | 1 | 2): number => Math.max(...cells.map((row) => row[at]));
        expectRefills(plan as readonly Admitted[], most(0));
        expectAtMost(sumOf(month as readonly Admitted[]), most(1));
        expectAtMost(sumOf(bought as readonly Admitted[]), most(2));
      }),
      runs(200),
    );
  });

  test('never change the name of a bucket', () => {
    fc.assert(
      fc.property(numbers, (limits) => {
        const limit = 'token_bucket: { max_tokens: { plan: n, default: 1 }, fill_interval: 1s }';
        const keys = versionsOf(limit, 'x', limits.map(String), 'n').map(
          (policy) => takesOf(policy, 'x', 1)[0]?.key,
        );
        expectEqual(new Set(keys).size, 1);
      }),
      runs(30),
    );
    expect(run).toBeGreaterThan(0);
  });
});
