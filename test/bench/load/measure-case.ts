import { cpuMicros, residentBytes } from '../cpu.js';
import { median } from '../micro/measure.js';
import { TENANT } from './call-template.js';
import type { BenchCase } from './cases.js';
import { h2load } from './h2load.js';
import type { LoadResult } from './load-result.js';
import { messageOf, TENANT_ADDRESS } from './policy.js';
import { runLoadClient } from './run-load-client.js';
import type { BenchTarget } from './targets.js';

export interface MeasureOptions {
  readonly rounds: number;
  /** About how long each round lasts. */
  readonly seconds: number;
  /** How many tenants `many` are. */
  readonly many: number;
}

/** One line of the table: medians of the rounds. */
export interface Row {
  readonly case: string;
  readonly target: string;
  readonly serverMicros: number;
  readonly redisMicros: number | undefined;
  /**
   * CPU of server and Redis together, against the yardstick's in the same case; undefined for a yardstick that did not
   * run.
   */
  readonly ratio: number | undefined;
  /** CPU of server and Redis together, of a Redis Cluster, against that of a single Redis in the same case. */
  readonly besideRedis: number | undefined;
  /** `serverMicros` + `redisMicros` of each round. */
  readonly rounds: readonly number[];
  readonly perSecond: number;
  readonly p50Micros: number;
  readonly p99Micros: number;
  readonly p999Micros: number;
  /** Longest wait of all rounds. */
  readonly maxMicros: number;
  readonly clientMicros: number;
  readonly residentBytes: number;
  /** Growth of the server's memory per new tenant; `arrivals` only. */
  readonly bytesPerTenant: number | undefined;
}

interface Round extends LoadResult {
  readonly serverMicros: number;
  readonly redisMicros: number;
}

/** What is sent to one target in one run. */
interface Dose {
  readonly requests: number;
  readonly tenants: number;
  readonly firstTenant: number;
  readonly rate: number | undefined;
}

/** What a Redis Cluster is held against. */
const SINGLE = 'weir, Redis';
const WARM_UP_REQUESTS = 10_000;
const LEAST_REQUESTS = 500;
/** Arrivals take no longer than this; where the million does not fit, fewer come. */
const ARRIVALS_SECONDS = 40;

function send(bench: BenchCase, target: BenchTarget, dose: Dose): Promise<LoadResult> {
  const { connections, streams } = bench;
  const blocks = bench.limits.some((limit) => limit.includes('CIDR'));
  const message = messageOf(bench.descriptors, bench.rules, blocks ? TENANT_ADDRESS : TENANT);
  if (bench.generator === 'own') {
    const { host, port, tls } = target;
    const encoded = Buffer.from(message).toString('base64');
    return runLoadClient({ host, port, tls, message: encoded, connections, streams, ...dose });
  }
  const common = { requests: dose.requests, connections, streams, rate: dose.rate };
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

async function run(bench: BenchCase, target: BenchTarget, dose: Dose): Promise<Round> {
  const { pid } = target;
  const server = cpuMicros(pid);
  const redis = redisMicros(target);
  const result = await send(bench, target, dose);
  return {
    ...result,
    serverMicros: (cpuMicros(pid) - server) / result.requests,
    redisMicros: (redisMicros(target) - redis) / result.requests,
  };
}

/** CPU time of all nodes. */
function redisMicros({ redisPids }: BenchTarget): number {
  return redisPids.reduce((sum, pid) => sum + cpuMicros(pid), 0);
}

/** A decision that the case does not expect means that it measures something else. */
function check(bench: BenchCase, target: BenchTarget, { overLimit, requests }: Round): void {
  if (overLimit === undefined || !target.name.startsWith('weir')) return;
  const denied = bench.verdict === 'denied' ? requests - overLimit : overLimit;
  if (denied > 0)
    throw new Error(
      `${bench.name}, ${target.name}: ${denied} of ${requests} answers are not as they should be`,
    );
}

function toRow(
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
    besideRedis: undefined,
    rounds: rounds.map((round) => round.serverMicros + round.redisMicros),
    perSecond: middle((round) => round.requests / round.seconds),
    p50Micros: middle((round) => round.p50Micros),
    p99Micros: middle((round) => round.p99Micros),
    p999Micros: middle((round) => round.p999Micros),
    maxMicros: Math.max(...rounds.map((round) => round.maxMicros)),
    clientMicros: middle((round) => round.clientMicros / round.requests),
    residentBytes: residentBytes(target.pid),
    bytesPerTenant: undefined,
    ...more,
  };
}

/** Dose of each round of a target, after its warm-up. */
async function prepare(bench: BenchCase, target: BenchTarget, options: MeasureOptions): Promise<Dose> {
  const tenants = bench.tenants === 'many' ? options.many : bench.tenants;
  const closed = { tenants: Math.min(tenants, 1000), firstTenant: 0, rate: undefined };
  const warm = Math.max(WARM_UP_REQUESTS * Math.min(1, options.seconds), closed.tenants, LEAST_REQUESTS);
  const first = await run(bench, target, { ...closed, requests: Math.ceil(3 * warm) });
  // Node.js 24 compiles what is hot again and again for more than a second.
  const long = Math.ceil((2 * options.seconds * first.requests) / first.seconds);
  const { requests, seconds } = await run(bench, target, { ...closed, requests: long });
  const perSecond = requests / seconds;
  const dose = (rate: number | undefined, length: number) => ({
    requests: Math.max(LEAST_REQUESTS, Math.round((rate ?? perSecond) * length)),
    tenants,
    firstTenant: 0,
    rate,
  });
  if (bench.load === 'saturation') {
    // All tenants have their bucket before the first round.
    if (bench.tenants === 'many') await run(bench, target, { ...dose(undefined, 1), requests: tenants });
    return dose(undefined, options.seconds);
  }
  const full = await run(bench, target, { ...closed, requests: Math.round(perSecond * options.seconds) });
  const saturation = full.requests / full.seconds;
  if (bench.load === 'half rate') return dose(saturation / 2, options.seconds * 2);
  // Slowly, so that what is waited for is the pause and not the queue behind it.
  const rate = saturation / 4;
  const arriving = Math.min(options.many, Math.round(rate * ARRIVALS_SECONDS));
  return { requests: arriving, tenants: arriving, firstTenant: 1_000_000, rate };
}

function together({ serverMicros, redisMicros }: Row): number {
  return serverMicros + (redisMicros ?? 0);
}

/**
 * Measures a case: the targets take turns, so that what else the machine does falls on all of them alike. Tells `say`
 * how far it is.
 */
export async function measureCase(
  bench: BenchCase,
  targets: readonly BenchTarget[],
  options: MeasureOptions,
  say: (line: string) => void,
): Promise<Row[]> {
  const plans: { target: BenchTarget; dose: Dose; before: number; rounds: Round[] }[] = [];
  for (const target of targets) {
    say(`${bench.name}: warming up ${target.name}`);
    const dose = await prepare(bench, target, options);
    plans.push({ target, dose, before: residentBytes(target.pid), rounds: [] });
  }
  // New tenants are new only once.
  const count = bench.load === 'arrivals' ? 1 : options.rounds;
  for (let index = 0; index < count; index++) {
    // Back and forth, so that none always follows the same other one.
    for (const { target, dose, rounds } of index % 2 === 0 ? plans : plans.toReversed()) {
      say(`${bench.name}: round ${index + 1} of ${count}, ${target.name}`);
      const round = await run(bench, target, dose);
      check(bench, target, round);
      rounds.push(round);
    }
  }
  const rows = plans.map(({ target, dose, before, rounds }, index) => {
    // The yardstick, first, keeps no tenants.
    if (bench.load !== 'arrivals' || index === 0) return toRow(bench, target, rounds);
    const bytesPerTenant = (residentBytes(target.pid) - before) / dose.requests;
    return toRow(bench, target, rounds, { bytesPerTenant });
  });
  const yardstick = rows[0]?.serverMicros;
  const single = rows.find(({ target }) => target === SINGLE);
  return rows.map((row) => ({
    ...row,
    ratio: yardstick === undefined ? undefined : together(row) / yardstick,
    besideRedis:
      single !== undefined && row.target === `${SINGLE} Cluster`
        ? together(row) / together(single)
        : undefined,
  }));
}
