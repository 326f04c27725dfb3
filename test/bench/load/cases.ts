import type { BucketKind, Limit } from './policy.js';

/** Store of weir. */
export type BenchStore = 'memory' | 'Redis' | 'Redis Cluster';

/** Kind of load in a case. */
export type Load =
  /** Maximum rate. */
  | 'saturation'
  /** Half of the maximum rate, which is measured first. */
  | 'half rate'
  /** {@link BenchCase.perSecond} */
  | 'fixed rate'
  /** Only new tenants, at a quarter of the maximum rate, to measure pauses and memory. */
  | 'arrivals';

/** A case of `npm run bench -- load`. */
export interface BenchCase {
  readonly name: string;
  readonly load: Load;
  /** `h2load` if all calls are equal, otherwise `own` for load-client.ts. */
  readonly generator: 'h2load' | 'own';
  readonly stores: readonly BenchStore[];
  readonly connections: number;
  readonly streams: number;
  readonly descriptors: number;
  readonly rules: number;
  /** `many` means a million, or the value of `--many`. */
  readonly tenants: number | 'many';
  readonly bucketKind: BucketKind;
  readonly tls: boolean;
  /** Kinds of policies to compare. */
  readonly limits: readonly Limit[];
  /** Whether the load goes to an Envoy that calls the target. */
  readonly envoy: boolean;
  /** Whether calls end the requests of earlier calls that placed holds, in turns with calls that start requests. */
  readonly ends: boolean;
  /** Number of weir processes with one Redis, which get the calls in turn. */
  readonly replicas: number;
  /** Whether the n-th tenant sends 1/n as many calls as the first one. */
  readonly zipf: boolean;
  /** Calls per second with the load `fixed rate`. */
  readonly perSecond: number;
}

const BASE: BenchCase = {
  name: '',
  load: 'saturation',
  generator: 'h2load',
  stores: ['memory', 'Redis'],
  connections: 4,
  streams: 16,
  descriptors: 1,
  rules: 10,
  tenants: 1,
  bucketKind: 'fast refill',
  tls: false,
  limits: ['token bucket'],
  envoy: false,
  ends: false,
  replicas: 1,
  zipf: false,
  perSecond: 0,
};

/** Calls per second of all processes in the cases of {@link leaseBench}. */
const LEASE_CALLS_PER_SECOND = 20_000;

function bench(name: string, changes: Partial<BenchCase> = {}): BenchCase {
  return { ...BASE, ...changes, name };
}

/** Returns a case in which requests start and end in turns, so that one of two decisions places a hold. */
function holdBench(limit: 'concurrency' | 'reservation', tenants = 1): BenchCase {
  const name = tenants === 1 ? limit : `${limit}, ${tenants.toLocaleString('en')} tenants`;
  return bench(name, {
    generator: 'own',
    tenants,
    // One bucket takes more hits in a run than a kept bucket has.
    bucketKind: tenants === 1 ? 'slow refill' : 'kept',
    limits: ['token bucket', limit],
    ends: true,
  });
}

/** Returns a case that compares a limit with and without leases at a fixed rate, by default in three processes. */
function leaseBench(name: string, changes: Partial<BenchCase>): BenchCase {
  return bench(`leases, ${name}`, {
    load: 'fixed rate',
    generator: 'own',
    stores: ['Redis'],
    connections: 6,
    limits: ['token bucket', 'lease'],
    replicas: 3,
    perSecond: LEASE_CALLS_PER_SECOND,
    ...changes,
  });
}

/** All cases, in the order of the tables. The other cases differ from the first case as described by their names. */
export const CASES: readonly BenchCase[] = [
  bench('one hot key'),
  bench('1,000 tenants', { generator: 'own', tenants: 1000, bucketKind: 'kept' }),
  bench('three masters', { stores: ['Redis', 'Redis Cluster'] }),
  bench('three masters, 1,000 tenants', {
    generator: 'own',
    tenants: 1000,
    bucketKind: 'kept',
    stores: ['Redis', 'Redis Cluster'],
  }),
  bench('many tenants', { generator: 'own', tenants: 'many', bucketKind: 'kept' }),
  bench('3 descriptors', { descriptors: 3 }),
  bench('10 descriptors', { descriptors: 10 }),
  bench('10,000 rules', { rules: 10_000 }),
  bench('all denied', { bucketKind: 'denied' }),
  bench('all denied, 1,000 tenants', { generator: 'own', tenants: 1000, bucketKind: 'denied' }),
  bench('one call in flight', { connections: 1, streams: 1 }),
  bench('1 connection', { connections: 1 }),
  bench('100 connections', { connections: 100, streams: 4 }),
  bench('TLS', { tls: true }),
  bench('windows', { limits: ['token bucket', 'window', 'window, all sinks'] }),
  bench('plans', { bucketKind: 'slow refill', limits: ['token bucket', 'plan'] }),
  bench('plans, 1,000 tenants', {
    generator: 'own',
    tenants: 1000,
    bucketKind: 'kept',
    limits: ['token bucket', 'plan'],
  }),
  bench('plans, many tenants', {
    generator: 'own',
    tenants: 'many',
    bucketKind: 'kept',
    stores: ['memory'],
    limits: ['token bucket', 'plan'],
  }),
  holdBench('concurrency'),
  holdBench('concurrency', 1000),
  bench('concurrency, no ends', { limits: ['token bucket', 'concurrency'] }),
  holdBench('reservation'),
  holdBench('reservation', 1000),
  bench('reservation, no ends', { bucketKind: 'slow refill', limits: ['token bucket', 'reservation'] }),
  bench('several limits, matchers', {
    bucketKind: 'slow refill',
    limits: [
      'token bucket',
      'two limits',
      '1,000 CIDR blocks',
      'two limits, 1,000 CIDR blocks',
      '1,000 regular expressions',
    ],
  }),
  bench('several limits, matchers, 1,000 tenants', {
    generator: 'own',
    tenants: 1000,
    bucketKind: 'kept',
    limits: ['token bucket', 'two limits', '1,000 regular expressions'],
  }),
  bench('leases, one hot key', { limits: ['token bucket', 'lease', 'lease of 100'] }),
  leaseBench('double the limit', { bucketKind: 'half of the calls' }),
  leaseBench('100 tenants (Zipf)', { tenants: 100, zipf: true, bucketKind: 'kept', replicas: 1 }),
  bench('leases, 1,000 tenants', {
    generator: 'own',
    tenants: 1000,
    bucketKind: 'kept',
    stores: ['Redis'],
    limits: ['token bucket', 'lease'],
  }),
  bench('behind Envoy', { envoy: true, connections: 8, streams: 4 }),
  bench('half rate', { load: 'half rate' }),
  bench('half rate, 1,000 tenants', {
    load: 'half rate',
    generator: 'own',
    tenants: 1000,
    bucketKind: 'kept',
  }),
  bench('new tenants arrive', {
    load: 'arrivals',
    generator: 'own',
    tenants: 'many',
    bucketKind: 'kept',
    stores: ['memory'],
  }),
];

/** Returns whether the case supports an external server, which has its own limits for tenant and resource_group. */
export function supportsExternalServer({ tls, limits, rules, bucketKind }: BenchCase): boolean {
  return !tls && limits.length === 1 && rules === BASE.rules && bucketKind !== 'denied';
}
