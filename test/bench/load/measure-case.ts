import { scrape, sumOf } from '../../support/prometheus/metrics-text.js';
import { cpuMicros, residentBytes } from '../cpu.js';
import { median } from '../micro/measure.js';
import { TENANT } from './call-template.js';
import type { BenchCase } from './cases.js';
import { h2load } from './h2load.js';
import type { LoadResult } from './load-result.js';
import { messageOf, TENANT_ADDRESS } from './policy.js';
import { runLoadClient } from './run-load-client.js';
import { type BenchTarget, IN_MEMORY, PING_PONG } from './targets.js';

export interface MeasureOptions {
  readonly rounds: number;
  /** Approximate duration of a round. */
  readonly seconds: number;
  /** Number of tenants in cases with `many` tenants. */
  readonly many: number;
}

/** A row of the table, with medians of the rounds. */
export interface Row {
  readonly case: string;
  readonly target: string;
  readonly serverMicros: number;
  readonly redisMicros: number | undefined;
  /** CPU time of server and Redis, divided by the CPU time of the baseline; undefined without a baseline. */
  readonly ratio: number | undefined;
  /** CPU time with a Redis Cluster, divided by the CPU time with a single Redis; undefined for other rows. */
  readonly clusterRatio: number | undefined;
  /** CPU time with leases, divided by the CPU time in memory; undefined for other rows. */
  readonly memoryRatio: number | undefined;
  /** CPU time with leases, divided by the CPU time without; undefined for other rows. */
  readonly leaseRatio: number | undefined;
  /** CPU time in memory, divided by the CPU time of a ping-pong of the same bytes; undefined for other rows. */
  readonly pingPongRatio: number | undefined;
  /** `serverMicros` + `redisMicros` of each round. */
  readonly rounds: readonly number[];
  readonly perSecond: number;
  readonly p50Micros: number;
  readonly p99Micros: number;
  readonly p999Micros: number;
  /** Maximum latency of all rounds. */
  readonly maxMicros: number;
  readonly clientMicros: number;
  readonly residentBytes: number;
  /** Growth of the server's memory for each new tenant; only with the load `arrivals`. */
  readonly bytesPerTenant: number | undefined;
  /** Number of decisions for which a process asked Redis, per 100; only in cases with leases. */
  readonly tripsPer100: number | undefined;
  /** Number of allowed calls, per 100; only in cases that exceed a limit with leases. */
  readonly allowedPer100: number | undefined;
}

interface Round extends LoadResult {
  readonly serverMicros: number;
  readonly redisMicros: number;
  readonly tripsPer100: number;
}

/** Load of a target in a round. */
interface RunPlan {
  readonly requests: number;
  readonly tenants: number;
  readonly firstTenant: number;
  readonly rate: number | undefined;
}

/** Target that a Redis Cluster is compared with. */
const SINGLE_REDIS = 'weir, Redis';
/** Node.js 24 recompiles hot functions during more than 100,000 requests. */
const WARM_UP_REQUESTS = 200_000;
const MIN_REQUESTS = 500;
/** Maximum duration of the load `arrivals`, which limits the number of new tenants. */
const ARRIVALS_SECONDS = 40;

function send(bench: BenchCase, target: BenchTarget, plan: RunPlan): Promise<LoadResult> {
  const { connections, streams, ends } = bench;
  const blocks = bench.limits.some((limit) => limit.includes('CIDR'));
  const message = messageOf(bench.descriptors, bench.rules, blocks ? TENANT_ADDRESS : TENANT);
  if (bench.generator === 'own') {
    const { host, port, tls, replicas } = target;
    const otherPorts = replicas.slice(1).map((one) => one.port);
    const encoded = Buffer.from(message).toString('base64');
    const { zipf } = bench;
    const load = { message: encoded, connections, streams, ends, zipf, ...plan };
    return runLoadClient({ host, port, otherPorts, tls, ...load });
  }
  const common = { requests: plan.requests, connections, streams, rate: plan.rate };
  if (target.envoyPort !== undefined) {
    const headers = [`x-tenant: ${TENANT}`];
    return h2load({
      ...common,
      address: `127.0.0.1:${target.envoyPort}`,
      tls: false,
      message: undefined,
      headers,
    });
  }
  return h2load({ ...common, address: `${target.host}:${target.port}`, tls: target.tls, message });
}

async function run(bench: BenchCase, target: BenchTarget, plan: RunPlan): Promise<Round> {
  const before = await withoutTrip(bench, target);
  const server = serverMicros(target);
  const redis = redisMicros(target);
  const result = await send(bench, target, plan);
  const used = { serverMicros: serverMicros(target) - server, redisMicros: redisMicros(target) - redis };
  const without = (await withoutTrip(bench, target)) - before;
  return {
    ...result,
    serverMicros: used.serverMicros / result.requests,
    redisMicros: used.redisMicros / result.requests,
    tripsPer100: 100 * (1 - without / result.requests),
  };
}

/** Metrics of decisions for which a process did not ask Redis. */
const WITHOUT_TRIP = [
  'weir_lease_trips_saved_total',
  'weir_lease_early_denials_total',
  'weir_deny_cache_answers_total',
];

/** Returns the number of decisions without a trip to Redis; 0 in cases without leases. */
async function withoutTrip({ limits }: BenchCase, { replicas }: BenchTarget): Promise<number> {
  if (!limits.includes('lease')) return 0;
  const scrapes = await Promise.all(replicas.map((replica) => scrape(replica)));
  const counts = scrapes.flatMap((one) =>
    WITHOUT_TRIP.map((name) => (one === undefined ? 0 : sumOf(one, name))),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Returns the CPU time of all processes of a server. */
function serverMicros({ pid, replicas }: BenchTarget): number {
  const pids = replicas.length === 0 ? [pid] : replicas.map((replica) => replica.pid);
  return pids.reduce((sum, one) => sum + cpuMicros(one), 0);
}

/** Returns the CPU time of all Redis nodes. */
function redisMicros({ redisPids }: BenchTarget): number {
  return redisPids.reduce((sum, pid) => sum + cpuMicros(pid), 0);
}

/** Throws an error if weir gave unexpected answers, because the results would then be wrong. */
function checkAnswers(bench: BenchCase, target: BenchTarget, { overLimit, requests }: Round): void {
  if (overLimit === undefined || !target.name.startsWith('weir')) return;
  if (bench.bucketKind === 'half of the calls') return;
  const unexpected = bench.bucketKind === 'denied' ? requests - overLimit : overLimit;
  if (unexpected > 0)
    throw new Error(
      `${bench.name}, ${target.name}: ${unexpected} of ${requests} answers have an unexpected code`,
    );
}

function summarizeRounds(
  bench: BenchCase,
  target: BenchTarget,
  rounds: readonly Round[],
  more: Partial<Row> = {},
): Row {
  const middle = (pick: (round: Round) => number) => median(rounds.map(pick));
  return {
    case: bench.name,
    target: target.name,
    serverMicros: middle((round) => round.serverMicros),
    redisMicros: target.redisPids.length === 0 ? undefined : middle((round) => round.redisMicros),
    ratio: undefined,
    clusterRatio: undefined,
    memoryRatio: undefined,
    leaseRatio: undefined,
    pingPongRatio: undefined,
    rounds: rounds.map((round) => round.serverMicros + round.redisMicros),
    perSecond: middle((round) => round.requests / round.seconds),
    p50Micros: middle((round) => round.p50Micros),
    p99Micros: middle((round) => round.p99Micros),
    p999Micros: middle((round) => round.p999Micros),
    maxMicros: Math.max(...rounds.map((round) => round.maxMicros)),
    clientMicros: middle((round) => round.clientMicros / round.requests),
    residentBytes: residentBytes(target.pid),
    bytesPerTenant: undefined,
    tripsPer100:
      bench.limits.includes('lease') && target.redisPids.length > 0
        ? middle((round) => round.tripsPer100)
        : undefined,
    allowedPer100:
      bench.bucketKind === 'half of the calls'
        ? middle(({ overLimit = 0, requests }) => 100 * (1 - overLimit / requests))
        : undefined,
    ...more,
  };
}

/** Warms up a target. Resolves with the plan for each of its rounds. */
async function warmUp(bench: BenchCase, target: BenchTarget, options: MeasureOptions): Promise<RunPlan> {
  const tenants = bench.tenants === 'many' ? options.many : bench.tenants;
  const closed = { tenants: Math.min(tenants, 1000), firstTenant: 0, rate: undefined };
  const warm = Math.max(Math.ceil(WARM_UP_REQUESTS * Math.min(1, options.seconds)), closed.tenants);
  const { requests, seconds } = await run(bench, target, { ...closed, requests: warm });
  const perSecond = requests / seconds;
  const plan = (rate: number | undefined, length: number) => ({
    requests: Math.max(MIN_REQUESTS, Math.round((rate ?? perSecond) * length)),
    tenants,
    firstTenant: 0,
    rate,
  });
  if (bench.load === 'fixed rate') return plan(bench.perSecond, options.seconds);
  if (bench.load === 'saturation') {
    // Create the buckets of all tenants before the first round.
    if (bench.tenants === 'many') await run(bench, target, { ...plan(undefined, 1), requests: tenants });
    return plan(undefined, options.seconds);
  }
  const full = await run(bench, target, { ...closed, requests: Math.round(perSecond * options.seconds) });
  const saturation = full.requests / full.seconds;
  if (bench.load === 'half rate') return plan(saturation / 2, options.seconds * 2);
  // The rate is low, so that the maximum latency is the longest pause, without the delay of a queue.
  const rate = saturation / 4;
  const arriving = Math.min(options.many, Math.round(rate * ARRIVALS_SECONDS));
  return { requests: arriving, tenants: arriving, firstTenant: 1_000_000, rate };
}

function totalMicros({ serverMicros, redisMicros }: Row): number {
  return serverMicros + (redisMicros ?? 0);
}

/** Measures a case. The rounds alternate between the targets, so that other load on the machine affects all of them. */
export async function measureCase(
  bench: BenchCase,
  targets: readonly BenchTarget[],
  options: MeasureOptions,
  printProgress: (line: string) => void,
): Promise<Row[]> {
  const states: { target: BenchTarget; plan: RunPlan; before: number; rounds: Round[] }[] = [];
  for (const target of targets) {
    printProgress(`${bench.name}: warming up ${target.name}`);
    const plan = await warmUp(bench, target, options);
    states.push({ target, plan, before: residentBytes(target.pid), rounds: [] });
  }
  // A second round would have no new tenants.
  const count = bench.load === 'arrivals' ? 1 : options.rounds;
  for (let index = 0; index < count; index++) {
    // Alternate the order, so that no target always runs after the same other target.
    for (const { target, plan, rounds } of index % 2 === 0 ? states : states.toReversed()) {
      printProgress(`${bench.name}: round ${index + 1} of ${count}, ${target.name}`);
      const round = await run(bench, target, plan);
      checkAnswers(bench, target, round);
      rounds.push(round);
    }
  }
  const rows = states.map(({ target, plan, before, rounds }, index) => {
    // The first target is the baseline, which has no tenants.
    if (bench.load !== 'arrivals' || index === 0) return summarizeRounds(bench, target, rounds);
    const bytesPerTenant = (residentBytes(target.pid) - before) / plan.requests;
    return summarizeRounds(bench, target, rounds, { bytesPerTenant });
  });
  const baseline = rows[0]?.serverMicros;
  const single = rows.find(({ target }) => target === SINGLE_REDIS);
  const memory = rows.find(({ target }) => target.startsWith(IN_MEMORY));
  const unleased = rows.find(({ target }) => target === `${SINGLE_REDIS}, token bucket`);
  const leases = ({ target }: Row): boolean => /, lease( of 100)?$/.test(target);
  const pingPong = rows.find(({ target }) => target === PING_PONG);
  return rows.map((row) => ({
    ...row,
    ratio: baseline === undefined ? undefined : totalMicros(row) / baseline,
    clusterRatio:
      single !== undefined && row.target === `${SINGLE_REDIS} Cluster`
        ? totalMicros(row) / totalMicros(single)
        : undefined,
    memoryRatio: leases(row) && memory !== undefined ? totalMicros(row) / totalMicros(memory) : undefined,
    leaseRatio: leases(row) && unleased !== undefined ? totalMicros(row) / totalMicros(unleased) : undefined,
    pingPongRatio:
      pingPong !== undefined && row.target === IN_MEMORY
        ? row.serverMicros / pingPong.serverMicros
        : undefined,
  }));
}
