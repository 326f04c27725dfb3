import type { Entry } from '../limiter/entry.js';
import type { StoreFailureAnswer } from '../limiter/failure-policy.js';
import type { RedisRole, StoreFault } from '../limiter/store-fault.js';
import { type AdminCounter, adminCounter } from './admin-calls.js';
import { BoundedCounters, SeriesBudget } from './bounded-counters.js';
import { type CallCounters, callCounters, type GIVEN_UP_REASONS } from './call-counters.js';
import { type CountedFamilyOptions, countedFamily } from './counted-family.js';
import {
  CountedRule,
  DECISION_SLOTS,
  FORGIVEN,
  OK,
  OVER_LIMIT,
  REPORTED,
  type RuleCounts,
  WOULD_BE_THROTTLED,
} from './counted-rule.js';
import { DurationHistogram } from './duration-histogram.js';
import { FamilyRegistry } from './family-registry.js';
import { FailureCounter, type FailureCounts } from './history/failure-counts.js';
import { type RateCounts, takeNewCounts } from './history/rate-counts.js';
import { HoldCounts } from './hold-counts.js';
import {
  CODES,
  DOMAIN,
  DOMAIN_STATE,
  KEYS,
  KNOWN_DOMAIN,
  REQUESTED_DOMAIN,
  RULE,
  SINK,
} from './label-meanings.js';
import { exposeDenyCache, exposeMemory } from './memory-gauges.js';
import type { MetricsOptions } from './metrics-options.js';
import { exposeProcess } from './process-metrics.js';
import { ReferenceStats } from './reference/reference-stats.js';
import { softLimitCounter } from './soft-limit-counts.js';
import { spillCounter } from './spill-counts.js';

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

/** Returns the keys of entries, separated by commas. */
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
 * Values of an unmatched series: a count, and two values for the warnings, initially 0. The log thus stores its state
 * with the counts, so METRICS_MAX_SERIES limits the state, too.
 */
export type UnmatchedSeries = number[];
const UNMATCHED_SLOTS = 3;

/**
 * All metrics of `/metrics`. Decisions are counted in plain arrays, and formatted at a scrape. A decision adds to
 * numbers that its rule has found before, see {@link CountedRule}.
 */
export class Metrics {
  readonly registry = new FamilyRegistry();
  /** The same events as statistics of the reference. */
  readonly reference: ReferenceStats;
  /** Duration of calls of ShouldRateLimit. */
  readonly requestSeconds = new DurationHistogram(
    'weir_request_duration_seconds',
    'Time from receiving a complete request over gRPC or `/json` to sending the answer, including errors.',
    REQUEST_SECONDS,
  );
  /** Counts operators' commands on the debug port. */
  readonly adminCalls: AdminCounter;
  readonly holds: HoldCounts;
  readonly #limits: readonly SeriesBudget[];
  readonly #byRule: SeriesBudget;
  readonly #byCaller: SeriesBudget;
  readonly #decisions: BoundedCounters;
  readonly #ruleCounts: RuleCounts;
  readonly passedOver: ReturnType<typeof softLimitCounter>;
  readonly spilled: ReturnType<typeof spillCounter>;
  readonly #unmatched: BoundedCounters;
  readonly #unknownDomains: BoundedCounters;
  readonly #storeSeconds = new DurationHistogram(
    'weir_store_duration_seconds',
    'Duration of a call to Redis.',
    STORE_SECONDS,
  );
  readonly #calls: CallCounters;
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
    this.passedOver = softLimitCounter(this.#byRule, this.registry);
    this.spilled = spillCounter(this.#byRule, this.registry);
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
    exposeMemory(this.registry, options.memoryStats);
    if (options.denyCacheStats !== undefined) exposeDenyCache(this.registry, options.denyCacheStats);
    this.registry.addFamily(this.#storeSeconds);
    this.#calls = callCounters(this.registry);
    this.adminCalls = adminCounter(this.registry);
    this.#exposeStates(options.version);
    this.registry.addFamily(this.requestSeconds);
    for (const result of ['success', 'error']) this.#calls.reloads.inc({ result }, 0);
  }

  /** Returns the counter of a rule. */
  counterOf(
    domain: string,
    { path, statName }: { readonly path: string; readonly statName: string },
  ): CountedRule {
    return new CountedRule(this.#ruleCounts, { domain, label: path, stat: statName, fromCaller: false });
  }

  /** Returns the counter of a limit override that is named `stat`. All overrides of a domain share one series. */
  overrideCounter(domain: string, stat: string): CountedRule {
    return new CountedRule(this.#ruleCounts, { domain, label: 'override', stat, fromCaller: true });
  }

  /** Passes the decisions since the previous call to `take`, by rule; see {@link takeNewCounts}. */
  takeNewDecisions(take: (counts: RateCounts) => void): void {
    const slots = { ok: OK, denied: OVER_LIMIT, would: WOULD_BE_THROTTLED, reported: REPORTED };
    takeNewCounts(this.#decisions, slots, take);
  }

  /** Returns the answers without a decision of the store since the previous call. Only one reader may call it. */
  takeNewFailures(): FailureCounts {
    return this.#failures.take();
  }

  /** Counts hits of a charge beyond the `max_debt` of a rule. */
  forgiven(domain: string, rule: string, hits: number): void {
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

  /** Counts a fault of a Redis or of its connection. */
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

  /** Exposes the states of domains. Each scrape calls `states`. */
  exposeDomainStates(states: () => readonly { readonly domain: string; readonly state: string }[]): void {
    this.registry.gauge(
      {
        name: 'weir_domain_state',
        help:
          '1 for the current state of a domain: ok (in sync), kept (invalid, previous version in effect), ' +
          'absent (invalid, not in effect).',
        labels: { domain: KNOWN_DOMAIN, state: DOMAIN_STATE },
      },
      () => states().map(({ domain, state }) => [{ domain, state }, 1]),
    );
  }

  /** Exposes the number of lines that `output` dropped. */
  exposeLogOutput(output: { readonly dropped: number }): void {
    this.registry.counter(
      {
        name: 'weir_log_lines_dropped_total',
        help: 'Log lines dropped because the log output was too slow or failed.',
      },
      () => output.dropped,
    );
  }

  /** Exposes the number of metrics that each sink dropped. Each scrape calls `exposeSinks`. */
  exposeSinks(exposeSinks: () => readonly { readonly name: string; readonly dropped: number }[]): void {
    this.registry.counter(
      {
        name: 'weir_stats_dropped_total',
        help: 'Metrics that could not be sent, by sink.',
        labels: { sink: SINK },
      },
      () => exposeSinks().map(({ name, dropped }) => [{ sink: name }, dropped]),
    );
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
    this.registry.gauge(
      {
        name: 'weir_config_last_reload_successful',
        help:
          '1 if the current policies are in effect, 0 if a policy is invalid and its previous version is in ' +
          'effect.',
        aggregator: 'min',
      },
      () => Number(this.#isReloadOk),
    );
    this.registry.gauge(
      {
        name: 'weir_store_up',
        help: '1 if the store is available, 0 while Redis is unavailable.',
        aggregator: 'min',
      },
      () => Number(this.#isStoreUp),
    );
    this.registry.gauge(
      {
        name: 'weir_info',
        help: 'Versions of weir and its policies. The value is always 1.',
        aggregator: 'first',
        labels: {
          version: { meaning: "weir's version." },
          policy: { meaning: 'A short hash of the policies in effect, or `none`.' },
        },
      },
      () => (this.#policyVersion === undefined ? [] : [[{ version, policy: this.#policyVersion }, 1]]),
    );
  }

  /** Exposes the series that are stored in {@link BoundedCounters}. */
  #exposeCounts(): void {
    const decisions = this.#decisions;
    const byRule = { domain: DOMAIN, rule: RULE };
    const add = (options: CountedFamilyOptions): void => this.registry.addFamily(countedFamily(options));
    add({
      name: 'weir_decisions_total',
      help: 'Decided descriptors, by domain, rule and code.',
      labels: ['domain', 'rule'],
      meanings: { ...byRule, code: { meaning: "The descriptor's code.", values: CODES } },
      counts: decisions,
      numbers: (values) => [
        ['code="OK"', values[OK] ?? 0],
        ['code="OVER_LIMIT"', values[OVER_LIMIT] ?? 0],
      ],
    });
    add({
      name: 'weir_would_be_throttled_total',
      help:
        'Descriptors that exceeded their limit but were allowed because of monitoring, a grace period, ' +
        'shadow mode, quota mode or enforce_percent.',
      labels: ['domain', 'rule'],
      meanings: byRule,
      counts: decisions,
      numbers: (values) => [['', values[WOULD_BE_THROTTLED] ?? 0]],
    });
    add({
      name: 'weir_debt_forgiven_total',
      help: 'Hits that weir forgave because the debt would have exceeded max_debt, by domain and rule.',
      labels: ['domain', 'rule'],
      meanings: byRule,
      counts: decisions,
      numbers: (values) => ((values[FORGIVEN] ?? 0) > 0 ? [['', values[FORGIVEN] as number]] : []),
    });
    add({
      name: 'weir_unmatched_total',
      help: 'Descriptors that matched no rule, by domain and entry keys.',
      labels: ['domain', 'keys'],
      meanings: { domain: DOMAIN, keys: KEYS },
      counts: this.#unmatched,
      numbers: (values) => [['', values[0] ?? 0]],
    });
    add({
      name: 'weir_unknown_domain_total',
      help: 'Requests with an unknown domain, by domain.',
      labels: ['domain'],
      meanings: { domain: REQUESTED_DOMAIN },
      counts: this.#unknownDomains,
      numbers: (values) => [['', values[0] ?? 0]],
    });
    this.registry.counter(
      {
        name: 'weir_metrics_series_refused_total',
        help: 'Events counted as `other` because METRICS_MAX_SERIES was reached.',
      },
      () => this.#limits.reduce((sum, { refused }) => sum + refused, 0),
    );
  }
}
