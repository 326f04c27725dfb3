import type { Limit, Verdict } from './policy.js';

/** Where a weir keeps its buckets. */
export type BenchStore = 'memory' | 'Redis' | 'Redis Cluster';

/** How a case loads its targets. */
export type Load =
  /** As fast as answers come. */
  | 'saturation'
  /** At half the rate of saturation, which is measured before. */
  | 'half rate'
  /** New tenants only, at a quarter of the rate of saturation: what they cost in pauses and memory. */
  | 'arrivals';

/** One line of `npm run bench -- load --list`. */
export interface BenchCase {
  readonly name: string;
  readonly load: Load;
  /** h2load where the call is always the same, else the generator of our own. */
  readonly generator: 'h2load' | 'own';
  readonly stores: readonly BenchStore[];
  readonly connections: number;
  readonly streams: number;
  readonly descriptors: number;
  readonly rules: number;
  /** `many`: a million, or what `--many` says. */
  readonly tenants: number | 'many';
  readonly verdict: Verdict;
  readonly tls: boolean;
  /** Policies that are measured beside each other, the one that all others have first. */
  readonly limits: readonly Limit[];
  /** Through a real Envoy, which asks the target. */
  readonly envoy: boolean;
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
  verdict: 'allowed',
  tls: false,
  limits: ['token bucket'],
  envoy: false,
};

function bench(name: string, changes: Partial<BenchCase> = {}): BenchCase {
  return { ...BASE, ...changes, name };
}

/** All cases, in the order of the tables. The first is the one that others differ from in what their names say. */
export const CASES: readonly BenchCase[] = [
  bench('one hot key'),
  bench('1,000 tenants', { generator: 'own', tenants: 1000, verdict: 'kept' }),
  bench('three masters', { stores: ['Redis', 'Redis Cluster'] }),
  bench('three masters, 1,000 tenants', {
    generator: 'own',
    tenants: 1000,
    verdict: 'kept',
    stores: ['Redis', 'Redis Cluster'],
  }),
  bench('many tenants', { generator: 'own', tenants: 'many', verdict: 'kept' }),
  bench('3 descriptors', { descriptors: 3 }),
  bench('10 descriptors', { descriptors: 10 }),
  bench('10,000 rules', { rules: 10_000 }),
  bench('all denied', { verdict: 'denied' }),
  bench('all denied, 1,000 tenants', { generator: 'own', tenants: 1000, verdict: 'denied' }),
  bench('one call in flight', { connections: 1, streams: 1 }),
  bench('1 connection', { connections: 1 }),
  bench('100 connections', { connections: 100, streams: 4 }),
  bench('TLS', { tls: true }),
  bench('windows', { limits: ['token bucket', 'window', 'window, all sinks'] }),
  bench('several limits, matchers', {
    verdict: 'lasting',
    limits: [
      'token bucket',
      'two limits',
      'candidate',
      '1,000 CIDR blocks',
      'two limits, candidate, 1,000 CIDR blocks',
      '1,000 regular expressions',
    ],
  }),
  bench('several limits, matchers, 1,000 tenants', {
    generator: 'own',
    tenants: 1000,
    verdict: 'kept',
    limits: ['token bucket', 'two limits', 'candidate', '1,000 regular expressions'],
  }),
  bench('behind Envoy', { envoy: true, connections: 8, streams: 4 }),
  bench('half rate', { load: 'half rate' }),
  bench('half rate, 1,000 tenants', { load: 'half rate', generator: 'own', tenants: 1000, verdict: 'kept' }),
  bench('new tenants arrive', {
    load: 'arrivals',
    generator: 'own',
    tenants: 'many',
    verdict: 'kept',
    stores: ['memory'],
  }),
];

/**
 * Whether a server that we have not configured can be measured: it decides on tenant and resource_group as it likes.
 */
export function isPlain({ tls, limits, rules, verdict }: BenchCase): boolean {
  return !tls && limits.length === 1 && rules === BASE.rules && verdict !== 'denied';
}
