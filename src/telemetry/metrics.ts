import { collectDefaultMetrics, Registry } from '@prometheus-io/client';
import type { Entry } from '../limiter/entry.js';
import type { RedisRole, StoreFailureAnswer, StoreFault } from '../limiter/failure-policy.js';
import { BoundedCounters, SeriesBudget } from './bounded-counters.js';
import type { ADMIN_RESULTS, FamilyName, GIVEN_UP_REASONS } from './families.js';
import { DurationHistogram, type EventCounter, FamilyRegistry, headOf } from './family-registry.js';
import { FailureCounter, type FailureCounts } from './history/rate-history.js';
import { ReferenceStats } from './reference/reference-stats.js';
import {
  DECISION_SLOTS,
  FORGIVEN,
  OK,
  OVER_LIMIT,
  type RateCounts,
  type RuleCounts,
  RuleSeries,
  takeNewCounts,
  WOULD_BE_THROTTLED,
} from './rule-series.js';

/** Statistics of the store in memory, read at each scrape. */
export interface MemoryStats {
  readonly size: number;
  readonly bytes: number;
  readonly evictions: number;
  readonly holdCount: number;
  readonly refusedHolds: number;
}

/** Statistics of the deny cache in front of Redis, read at each scrape. */
export interface DenyCacheStats {
  /** Requests that the cache answered. */
  readonly answers: number;
  /** Denials in the cache. */
  readonly entries: number;
}

/** Statistics of leases, read at each scrape. */
export type LeaseStats = Readonly<Record<'tripsSaved' | 'tokensLapsed' | 'earlyDenials', number>>;

export interface MetricsOptions {
  /**
   * Maximum number of series for rules, and also of series whose names depend on requests. Further series count as
   * `other`.
   */
  readonly maxSeries: number;
  readonly version: string;
  /** Includes local buckets. */
  readonly memoryStats: () => MemoryStats;
  /** Undefined in a process that decides no requests. */
  readonly denyCacheStats?: () => DenyCacheStats;
  readonly leaseStats?: () => LeaseStats;
  /** NEAR_LIMIT_RATIO. This and the next option are undefined in a process that decides no requests. */
  readonly nearLimitRatio?: number;
  /** Whether windows count the hits of denied requests. */
  readonly deniedHitsCount?: boolean;
}

/** Result of an operator's command. */
export type AdminResult = keyof typeof ADMIN_RESULTS;

/** Counts an operator's command. `action` is one of a few names. */
export type AdminCounter = (action: string, result: AdminResult) => void;

/**
 * Buckets of `weir_store_duration_seconds`. A local Redis answers within a millisecond; REDIS_TIMEOUT is two seconds.
 */
const STORE_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1, 2.5];

/** Buckets of `weir_request_duration_seconds`: 5 µs to 2.5 s. */
const REQUEST_SECONDS = [
  0.000005, 0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1,
  0.25, 0.5, 1, 2.5,
];

/** Maximum length of a label value that callers choose. A longer value counts as `other`. */
const MAX_LABEL_LENGTH = 200;

function keysLabel(entries: readonly Entry[]): string {
  let label = '';
  for (let i = 0; i < entries.length; i++) {
    const { key } = entries[i] as Entry;
    if (label.length + key.length > MAX_LABEL_LENGTH) return 'other';
    label += i === 0 ? key : `,${key}`;
  }
  return label.length > MAX_LABEL_LENGTH ? 'other' : label;
}

/**
 * Values of an unmatched series: a count, and a value for the warnings, initially 0. The log thus stores its state with
 * the counts, so METRICS_MAX_SERIES limits the state, too.
 */
export type UnmatchedSeries = number[];
const UNMATCHED_SLOTS = 2;

/**
 * All metrics of `/metrics`. Decisions are counted in plain arrays, and formatted at a scrape. A decision adds to
 * numbers that its rule has found before, see {@link RuleSeries}.
 */
export class Metrics {
  readonly registry = new FamilyRegistry();
  /** The same events as statistics of the reference. */
  readonly reference: ReferenceStats;
  /** Duration of calls of ShouldRateLimit. */
  readonly requestSeconds = new DurationHistogram(headOf('weir_request_duration_seconds'), REQUEST_SECONDS);
  /** Counts an operator's command on the debug port. A field, so that it can be passed on. */
  readonly adminCalls: AdminCounter = (action, result) => this.#calls.admin.inc({ action, result });
  readonly holds: HoldCounts;
  readonly #limits: readonly SeriesBudget[];
  readonly #byRule: SeriesBudget;
  readonly #byCaller: SeriesBudget;
  readonly #decisions: BoundedCounters;
  readonly #ruleCounts: RuleCounts;
  /** Number of requests over each soft limit that passed without a mark, and with one. */
  readonly #softLimits: BoundedCounters;
  readonly #spilled: BoundedCounters;
  readonly #unmatched: BoundedCounters;
  readonly #unknownDomains: BoundedCounters;
  readonly #storeSeconds = new DurationHistogram(headOf('weir_store_duration_seconds'), STORE_SECONDS);
  readonly #calls: ReturnType<typeof callCounters>;
  readonly #failures = new FailureCounter();
  #isReloadOk = true;
  #isStoreUp = false;
  /** Undefined until the first policy is set. */
  #policyVersion: string | undefined;

  constructor(options: MetricsOptions) {
    // Two separate budgets, so that names that callers invent cannot displace rules.
    this.#byRule = new SeriesBudget(options.maxSeries);
    this.#byCaller = new SeriesBudget(options.maxSeries);
    this.#decisions = new BoundedCounters(this.#byRule, DECISION_SLOTS);
    this.#softLimits = new BoundedCounters(this.#byRule, 2);
    this.registry.counted('weir_soft_limit_exceeded_total', this.#softLimits, (values) => [
      ['marked="false"', values[0] ?? 0],
      ['marked="true"', values[1] ?? 0],
    ]);
    this.#spilled = new BoundedCounters(this.#byRule, 1);
    this.registry.counted('weir_spilled_total', this.#spilled, firstNumber);
    this.holds = new HoldCounts(this.#byRule, this.registry);
    this.#unmatched = new BoundedCounters(this.#byCaller, UNMATCHED_SLOTS);
    this.#unknownDomains = new BoundedCounters(this.#byCaller, UNMATCHED_SLOTS, '');
    // Two more budgets for the reference's names, which are several per rule.
    const byRule = new SeriesBudget(options.maxSeries);
    const byCaller = new SeriesBudget(options.maxSeries);
    this.#limits = [this.#byRule, this.#byCaller, byRule, byCaller];
    const { nearLimitRatio = 1, deniedHitsCount = true } = options;
    this.reference = new ReferenceStats({ byRule, byCaller, nearLimitRatio, deniedHitsCount });
    this.#ruleCounts = { owner: this, decisions: this.#decisions, reference: this.reference };
    exposeProcess(this.registry);
    this.#exposeCounts();
    this.#exposeMemory(options.memoryStats);
    if (options.denyCacheStats !== undefined) this.#exposeDenyCache(options.denyCacheStats);
    if (options.leaseStats !== undefined) this.#exposeLeases(options.leaseStats);
    this.registry.addFamily(this.#storeSeconds);
    this.#calls = callCounters(this.registry);
    this.#exposeStates(options.version);
    this.registry.addFamily(this.requestSeconds);
    for (const result of ['success', 'error']) this.#calls.reloads.inc({ result }, 0);
  }

  /** Returns the counter of a limit with these names; see {@link CountedNames}. */
  counterOf(domain: string, label: string, stat: string, fromCaller: boolean): RuleSeries {
    return new RuleSeries(this.#ruleCounts, { domain, rulePath: label, statName: stat, fromCaller });
  }

  /** Passes the decisions since the previous call to `take`, by rule; see {@link takeNewCounts}. */
  takeNewDecisions(take: (counts: RateCounts) => void): void {
    takeNewCounts(this.#decisions, take);
  }

  /** Returns the answers without a decision of the store since the previous call. Only one reader may call it. */
  takeNewFailures(): FailureCounts {
    return this.#failures.take();
  }

  /** Counts a descriptor of a request that passed over the soft limit `rule`. `marked`: the request was marked. */
  softLimitExceeded(domain: string, rule: string, marked: boolean): void {
    this.#softLimits.increment(domain, rule, marked ? 1 : 0);
  }

  /** Counts a descriptor of an allowed request that did not fit into `rule`, and for which another limit paid. */
  spilled(domain: string, rule: string): void {
    this.#spilled.increment(domain, rule, 0);
  }

  /** Counts hits of a charge beyond the `max_debt` of a rule. */
  uncollected(domain: string, rule: string, hits: number): void {
    const values = this.#decisions.series(domain, rule);
    values[FORGIVEN] = (values[FORGIVEN] as number) + hits;
  }

  /** Counts a descriptor that matched no rule; see {@link UnmatchedSeries}. */
  unmatched(domain: string, entries: readonly Entry[]): UnmatchedSeries {
    const values = this.#unmatched.series(domain, keysLabel(entries));
    values[0] = (values[0] as number) + 1;
    return values;
  }

  /** Counts a request whose domain has no policy; see {@link UnmatchedSeries}. */
  unknownDomain(domain: string, descriptors: number): UnmatchedSeries {
    this.reference.unknownDomain(domain, descriptors);
    const values = this.#unknownDomains.series(domain.length > MAX_LABEL_LENGTH ? 'other' : domain, '');
    values[0] = (values[0] as number) + 1;
    return values;
  }

  /** Counts a request that got an answer without a decision. `domain` has a policy. */
  requestGivenUp(domain: string, reason: keyof typeof GIVEN_UP_REASONS): void {
    this.#calls.requestsGivenUp.inc({ domain, reason });
  }

  /** Counts a descriptor that `on_store_failure` answered. */
  storeFailed(policy: StoreFailureAnswer): void {
    this.#calls.storeFailureAnswers.inc({ policy });
    this.#failures.answered(policy);
  }

  /** Counts a request that the store could not decide. `reason` is one of a few names. */
  storeError(reason: string): void {
    this.#calls.storeErrors.inc({ reason });
  }

  redisFault(redis: RedisRole, reason: StoreFault): void {
    this.#calls.redisFaults.inc({ redis, reason });
  }

  storeAnswered(micros: number): void {
    this.#storeSeconds.observe(micros / 1e6);
  }

  storeUp(up: boolean): void {
    this.#isStoreUp = up;
  }

  brokenInvariant(): void {
    this.#calls.brokenInvariants.inc({});
  }

  /** Counts a call without a decision. `code` is the name of its gRPC status. */
  refused(code: 'INVALID_ARGUMENT' | 'UNAVAILABLE' | 'PERMISSION_DENIED'): void {
    this.#calls.refused.inc({ code });
    this.#failures.refused();
  }

  /** Notes the result of the first load; {@link reloaded} notes later ones. */
  loaded(success: boolean): void {
    this.#isReloadOk = success;
    this.reference.configLoaded(success);
  }

  reloaded(success: boolean): void {
    this.#calls.reloads.inc({ result: success ? 'success' : 'error' });
    this.loaded(success);
  }

  /** Sets the version of the policies in effect, which `weir_info` shows. */
  setPolicyVersion(policyVersion: string): void {
    this.#policyVersion = policyVersion;
  }

  #exposeStates(version: string): void {
    this.registry.show('weir_config_last_reload_successful', () => Number(this.#isReloadOk));
    this.registry.show('weir_store_up', () => Number(this.#isStoreUp));
    this.registry.show('weir_info', () =>
      this.#policyVersion === undefined ? [] : [[{ version, policy: this.#policyVersion }, 1]],
    );
  }

  #exposeCounts(): void {
    const { registry } = this;
    registry.counted('weir_decisions_total', this.#decisions, (values) => [
      ['code="OK"', values[OK] ?? 0],
      ['code="OVER_LIMIT"', values[OVER_LIMIT] ?? 0],
    ]);
    registry.counted('weir_would_be_throttled_total', this.#decisions, (values) => [
      ['', values[WOULD_BE_THROTTLED] ?? 0],
    ]);
    registry.counted('weir_debt_forgiven_total', this.#decisions, (values) =>
      (values[FORGIVEN] ?? 0) > 0 ? [['', values[FORGIVEN] as number]] : [],
    );
    registry.counted('weir_unmatched_total', this.#unmatched, firstNumber);
    registry.counted('weir_unknown_domain_total', this.#unknownDomains, firstNumber);
    registry.show('weir_metrics_series_refused_total', () =>
      this.#limits.reduce((sum, { refused }) => sum + refused, 0),
    );
  }

  #exposeMemory(stats: () => MemoryStats): void {
    this.registry.show('weir_memory_buckets', () => stats().size);
    this.registry.show('weir_memory_bucket_bytes', () => stats().bytes);
    this.registry.show('weir_memory_evictions_total', () => stats().evictions);
    this.registry.show('weir_memory_holds', () => stats().holdCount);
    this.registry.show('weir_memory_holds_refused_total', () => stats().refusedHolds);
  }

  #exposeLeases(stats: () => LeaseStats): void {
    this.registry.show('weir_lease_trips_saved_total', () => stats().tripsSaved);
    this.registry.show('weir_lease_tokens_lapsed_total', () => stats().tokensLapsed);
    this.registry.show('weir_lease_early_denials_total', () => stats().earlyDenials);
  }

  #exposeDenyCache(stats: () => DenyCacheStats): void {
    this.registry.show('weir_deny_cache_answers_total', () => stats().answers);
    this.registry.show('weir_deny_cache_entries', () => stats().entries);
  }
}

function firstNumber([value = 0]: readonly number[]): readonly (readonly [string, number])[] {
  return [['', value]];
}

function callCounters(registry: FamilyRegistry) {
  return {
    storeErrors: registry.events('weir_store_errors_total'),
    redisFaults: registry.events('weir_redis_faults_total'),
    storeFailureAnswers: registry.events('weir_store_failure_answers_total'),
    requestsGivenUp: registry.events('weir_requests_given_up_total'),
    brokenInvariants: registry.events('weir_broken_invariants_total'),
    refused: registry.events('weir_refused_total'),
    reloads: registry.events('weir_config_reloads_total'),
    admin: registry.events('weir_admin_total'),
  };
}

/** Metrics of the Prometheus client that weir does not expose. */
const UNUSED_METRICS = [
  // Gauges with names of counters. `nodejs_active_resources`, `_handles` and `_requests` expose the same by type.
  'nodejs_active_resources_total',
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  // A timer measures these, which would wake an idle process ten times a second.
  'nodejs_eventloop_utilization_summary',
  'nodejs_eventloop_utilization_histogram',
];
/** Maximum duration of a timer, in milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Exposes `process_*` and `nodejs_*`: resources of the process, the event loop and the garbage collector. */
export function exposeProcess(registry: FamilyRegistry): void {
  const client = new Registry();
  collectDefaultMetrics({ register: client, eventLoopUtilizationTimeout: MAX_TIMER_MS });
  for (const name of UNUSED_METRICS) client.removeSingleMetric(name);
  registry.addClient(client);
}

/** Upper bounds of the buckets of `weir_hold_overshoot_hits`. Estimates are often thousands of LLM tokens. */
const OVERSHOOT_HITS = [10, 100, 1000, 10_000, 100_000];

const PLACED = 0;
const SETTLED_KNOWN = 1;
const SETTLED_UNKNOWN = 2;
const RELEASED = 3;
const LOST = 4;
const HITS_PLACED = 5;
const HITS_SETTLED = 6;
const HITS_RELEASED = 7;
const HITS_USED = 8;
const OVERSHOOT_SUM = 9;
/** First bucket of the overshoot. The buckets are not cumulative, and the last one has no upper bound. */
const OVERSHOOT = 10;
const SLOTS = OVERSHOOT + OVERSHOOT_HITS.length + 1;

const HITS = [
  ['placed', HITS_PLACED],
  ['settled', HITS_SETTLED],
  ['released', HITS_RELEASED],
] as const;

type Values = readonly number[];

class HoldCounts {
  readonly #counts: BoundedCounters;
  readonly #unsettled: EventCounter<'domain' | 'kind'>;

  /** @param limit number of series by rule */
  constructor(limit: SeriesBudget, registry: FamilyRegistry) {
    const counts = new BoundedCounters(limit, SLOTS);
    this.#counts = counts;
    // Rules with holds show all of their counts, so that rates include the first event.
    const count = (name: FamilyName, slot: number): void =>
      registry.counted(name, counts, (values) => [['', values[slot] ?? 0]]);
    count('weir_holds_placed_total', PLACED);
    registry.counted('weir_holds_settled_total', counts, (values) => [
      ['use="known"', values[SETTLED_KNOWN] ?? 0],
      ['use="unknown"', values[SETTLED_UNKNOWN] ?? 0],
    ]);
    count('weir_holds_released_total', RELEASED);
    count('weir_hold_settlements_lost_total', LOST);
    registry.counted('weir_hold_hits_total', counts, (values) =>
      HITS.map(([event, slot]) => [`event="${event}"`, values[slot] ?? 0]),
    );
    count('weir_hold_used_hits_total', HITS_USED);
    registry.counted('weir_hold_overshoot_hits', counts, overshootSamples);
    this.#unsettled = registry.events('weir_hold_tokens_unmatched_total');
  }

  placed(domain: string, rule: string, hits: number): void {
    const values = this.#counts.series(domain, rule);
    add(values, PLACED, 1);
    add(values, HITS_PLACED, hits);
  }

  /** Counts a settled hold. `used` is undefined if the use is unknown. */
  settled(domain: string, rule: string, held: number, used: number | undefined): void {
    const values = this.#counts.series(domain, rule);
    add(values, used === undefined ? SETTLED_UNKNOWN : SETTLED_KNOWN, 1);
    add(values, HITS_SETTLED, held);
    if (used === undefined) return;
    add(values, HITS_USED, used);
    if (used <= held) return;
    const over = used - held;
    let bucket = 0;
    while (bucket < OVERSHOOT_HITS.length && over > (OVERSHOOT_HITS[bucket] as number)) bucket++;
    add(values, OVERSHOOT + bucket, 1);
    add(values, OVERSHOOT_SUM, over);
  }

  /** Counts a hold that weir gave back: its call was canceled or got no answer, or an operator released it. */
  released(domain: string, rule: string, hits: number): void {
    const values = this.#counts.series(domain, rule);
    add(values, RELEASED, 1);
    add(values, HITS_RELEASED, hits);
  }

  /** Counts a hold token that settled no hold. `domain` has a policy. */
  unsettled(domain: string, kind: 'unknown' | 'malformed' | 'unverified'): void {
    this.#unsettled.inc({ domain, kind });
  }

  /** Counts a settlement that was given up because the store was unavailable. */
  lost(domain: string, rule: string): void {
    add(this.#counts.series(domain, rule), LOST, 1);
  }
}

function add(values: number[], slot: number, number: number): void {
  values[slot] = (values[slot] as number) + number;
}

/** Returns the samples of a histogram, or none if no request of the rule used more than its hold. */
function overshootSamples(values: Values): readonly (readonly [string, number, string])[] {
  let below = 0;
  const samples = [...OVERSHOOT_HITS, '+Inf'].map((le, bucket) => {
    below += values[OVERSHOOT + bucket] ?? 0;
    return [`le="${le}"`, below, '_bucket'] as const;
  });
  if (below === 0) return [];
  return [...samples, ['', values[OVERSHOOT_SUM] ?? 0, '_sum'], ['', below, '_count']];
}
