import type { ControlKind } from '../limiter/control.js';
import type { Entry } from '../limiter/entry.js';
import type { StoreFailureAnswer } from '../limiter/failure-policy.js';
import type { RedisRole, StoreFault } from '../limiter/store-fault.js';
import { type AdminCounter, adminCounter } from './admin-calls.js';
import { BoundedCounters, SeriesLimit } from './bounded-counters.js';
import { type CallCounters, callCounters } from './call-counters.js';
import { CandidateCounts } from './candidate-counts.js';
import { type CountedFamilyOptions, countedFamily } from './counted-family.js';
import { DurationHistogram } from './duration-histogram.js';
import { FamilyRegistry } from './family-registry.js';
import { type FailureCounts, NewFailures } from './history/failure-counts.js';
import { newCounts, type RateCounts } from './history/rate-counts.js';
import {
  ASKED_DOMAIN,
  CODES,
  CONTROL_KIND,
  DOMAIN,
  DOMAIN_STATE,
  KEYS,
  KNOWN_DOMAIN,
  RULE,
  SINK,
} from './label-meanings.js';
import { exposeDenyCache, exposeMemory } from './memory-gauges.js';
import type { MetricsOptions } from './metrics-options.js';
import { exposeProcess } from './process-metrics.js';
import { ReferenceStats } from './reference/reference-stats.js';

/**
 * Buckets of `weir_store_duration_seconds`: a local Redis answers below a millisecond, REDIS_TIMEOUT is two seconds.
 */
const STORE_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1, 2.5];

/** Buckets of `weir_request_duration_seconds`: 5 µs to 2.5 s. */
const REQUEST_SECONDS = [
  0.000005, 0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1,
  0.25, 0.5, 1, 2.5,
];

/** Longest caller-chosen label value that is kept; a longer one counts as `other`. */
const MAX_LABEL_LENGTH = 200;

/** The keys of entries, with commas between them. */
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
 * The numbers of one series of what no rule or no policy takes: how many there were, then two for whoever tells of
 * them, 0 at first. So the log keeps what it said where the counts are, and is bounded as they are
 * (METRICS_MAX_SERIES).
 */
export type UnmatchedSeries = number[];
const UNMATCHED_SLOTS = 3;

const OK = 0;
const OVER_LIMIT = 1;
const WOULD_BE_THROTTLED = 2;
const FORGIVEN = 3;
/** Three of what {@link Metrics.newDecisions} has told. */
const TOLD = 4;
const DECISION_SLOTS = 7;

/**
 * Everything `/metrics` shows. Decisions are counted in plain numbers and written out when somebody asks, so that a
 * decision costs two map look-ups.
 */
export class Metrics {
  readonly registry = new FamilyRegistry();
  /** The same events as the reference counts them. */
  readonly reference: ReferenceStats;
  /** How long callers of ShouldRateLimit waited. */
  readonly requestSeconds = new DurationHistogram(
    'weir_request_duration_seconds',
    'Time from a complete request over gRPC or `/json` to its answer, including errors.',
    REQUEST_SECONDS,
  );
  /** Counts calls to the debug port that administer weir. */
  readonly administered: AdminCounter;
  readonly #limits: readonly SeriesLimit[];
  readonly #byRule: SeriesLimit;
  readonly #byCaller: SeriesLimit;
  readonly #decisions: BoundedCounters;
  readonly #candidates: CandidateCounts;
  readonly #controlled: BoundedCounters;
  readonly #unmatched: BoundedCounters;
  readonly #unknownDomains: BoundedCounters;
  readonly #storeSeconds = new DurationHistogram(
    'weir_store_duration_seconds',
    'Time of a call to Redis.',
    STORE_SECONDS,
  );
  readonly #calls: CallCounters;
  readonly #newFailures = new NewFailures();
  #isReloadOk = true;
  #isStoreUp = false;
  /** Undefined until it is named first. */
  #policyVersion: string | undefined;

  constructor(options: MetricsOptions) {
    // Two budgets: what callers make up must not push real rules out.
    this.#byRule = new SeriesLimit(options.maxSeries);
    this.#byCaller = new SeriesLimit(options.maxSeries);
    this.#decisions = new BoundedCounters(this.#byRule, DECISION_SLOTS);
    this.#candidates = new CandidateCounts(this.#byRule, this.registry);
    this.#controlled = new BoundedCounters(this.#byRule, 1);
    this.#unmatched = new BoundedCounters(this.#byCaller, UNMATCHED_SLOTS);
    this.#unknownDomains = new BoundedCounters(this.#byCaller, UNMATCHED_SLOTS, '');
    // And two of their own for the reference's names, which are more than one for a rule.
    const byRule = new SeriesLimit(options.maxSeries);
    const byCaller = new SeriesLimit(options.maxSeries);
    this.#limits = [this.#byRule, this.#byCaller, byRule, byCaller];
    const { nearLimitRatio = 1, deniedHitsCount = true } = options;
    this.reference = new ReferenceStats({ byRule, byCaller, nearLimitRatio, deniedHitsCount });
    exposeProcess(this.registry);
    this.#exposeCounts();
    exposeMemory(this.registry, options.memoryStats);
    if (options.denyCacheStats !== undefined) exposeDenyCache(this.registry, options.denyCacheStats);
    this.registry.addFamily(this.#storeSeconds);
    this.#calls = callCounters(this.registry);
    this.administered = adminCounter(this.registry);
    this.#exposeStates(options.version);
    this.registry.addFamily(this.requestSeconds);
    for (const result of ['success', 'error']) this.#calls.reloads.inc({ result }, 0);
  }

  decided(domain: string, rule: string, overLimit: boolean, wouldBeThrottled: boolean): void {
    const values = this.#decisions.series(domain, rule);
    const code = overLimit ? OVER_LIMIT : OK;
    values[code] = (values[code] as number) + 1;
    if (wouldBeThrottled) values[WOULD_BE_THROTTLED] = (values[WOULD_BE_THROTTLED] as number) + 1;
  }

  /** What was decided since this was asked last, by rule; see {@link newCounts}. */
  newDecisions(): Generator<RateCounts | ''> {
    return newCounts(this.#decisions, { ok: OK, denied: OVER_LIMIT, would: WOULD_BE_THROTTLED, told: TOLD });
  }

  /** What was answered without a decision of the store since this was asked last; for one asker. */
  newFailures(): FailureCounts {
    return this.#newFailures.take();
  }

  /** A candidate saw what was answered `live`. */
  candidate(domain: string, rule: string, live: boolean, candidate: boolean): void {
    this.#candidates.decided(domain, rule, live, candidate);
  }

  /** A block or an exemption decided a descriptor. */
  controlled(domain: string, kind: ControlKind): void {
    const values = this.#controlled.series(domain, kind);
    values[0] = (values[0] as number) + 1;
  }

  /** Hits of a charge went past the `max_debt` of a rule. */
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

  /** Counts a request for a domain that no policy has; see {@link UnmatchedSeries}. */
  unknownDomain(domain: string, descriptors: number): UnmatchedSeries {
    this.reference.unknownDomain(domain, descriptors);
    const values = this.#unknownDomains.series(domain.length > MAX_LABEL_LENGTH ? 'other' : domain, '');
    values[0] = (values[0] as number) + 1;
    return values;
  }

  /** Counts a request whose matching took more work than a request may cause; `domain` is one that has a policy. */
  matchExceeded(domain: string): void {
    this.#calls.matchExceeded.inc({ domain });
  }

  /**
   * Counts a request that was answered unseen: its turn did not come in time, or too many waited. `domain` is one that
   * has a policy.
   */
  requestGivenUp(domain: string, reason: 'late' | 'full'): void {
    this.#calls.requestsGivenUp.inc({ domain, reason });
  }

  /** Counts a descriptor that `on_store_failure` answered. */
  storeFailed(policy: StoreFailureAnswer): void {
    this.#calls.storeFailureAnswers.inc({ policy });
    this.#newFailures.answered(policy);
  }

  /** Counts a request that the store could not decide; `reason` is one of a handful. */
  storeError(reason: string): void {
    this.#calls.storeErrors.inc({ reason });
  }

  /** Counts a fault of one Redis, or of the way to it. */
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

  /** Counts a call that got no decision; `code` is the name of its gRPC status. */
  refused(code: 'INVALID_ARGUMENT' | 'UNAVAILABLE' | 'PERMISSION_DENIED'): void {
    this.#calls.refused.inc({ code });
    this.#newFailures.refused();
  }

  /** The first load ended; {@link reloaded} tells of those after it. */
  loaded(success: boolean): void {
    this.#isReloadOk = success;
    this.reference.configLoaded(success);
  }

  /** `states` is asked how each domain stands whenever metrics are. */
  domainStates(states: () => readonly { readonly domain: string; readonly state: string }[]): void {
    this.registry.gauge(
      {
        name: 'weir_domain_state',
        help:
          '1 for the state of each domain: ok (in sync), kept (invalid, previous version in effect), absent ' +
          '(invalid, not in effect).',
        labels: { domain: KNOWN_DOMAIN, state: DOMAIN_STATE },
      },
      function* () {
        for (const { domain, state } of states()) yield [{ domain, state }, 1];
      },
    );
  }

  /** `output` is asked what it lost whenever metrics are. */
  logOutput(output: { readonly dropped: number }): void {
    this.registry.counter(
      {
        name: 'weir_log_lines_dropped_total',
        help: 'Lost log lines, because the reader was too slow or a write failed.',
      },
      () => output.dropped,
    );
  }

  /** `sinks` are asked what they lost whenever metrics are. */
  sinks(sinks: () => readonly { readonly name: string; readonly dropped: number }[]): void {
    this.registry.counter(
      {
        name: 'weir_stats_dropped_total',
        help: 'Metrics that could not be sent, by sink.',
        labels: { sink: SINK },
      },
      () => sinks().map(({ name, dropped }) => [{ sink: name }, dropped]),
    );
  }

  reloaded(success: boolean): void {
    this.#calls.reloads.inc({ result: success ? 'success' : 'error' });
    this.loaded(success);
  }

  /** Names the policy in force, which `weir_info` shows. */
  policyInForce(policyVersion: string): void {
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
        help: 'Version of weir and of its policies. The value is always 1.',
        aggregator: 'first',
        labels: {
          version: { meaning: 'The version of weir.' },
          policy: { meaning: 'A short hash of the policies in effect, or `none`.' },
        },
      },
      () => (this.#policyVersion === undefined ? [] : [[{ version, policy: this.#policyVersion }, 1]]),
    );
  }

  /** Series whose numbers live in {@link BoundedCounters} until somebody asks. */
  #exposeCounts(): void {
    const decisions = this.#decisions;
    const byRule = { domain: DOMAIN, rule: RULE };
    const add = (options: CountedFamilyOptions): void => this.registry.addFamily(countedFamily(options));
    add({
      name: 'weir_decisions_total',
      help: 'Decided descriptors, by domain, rule and code.',
      labels: ['domain', 'rule'],
      meanings: { ...byRule, code: { meaning: 'The code of the descriptor.', values: CODES } },
      counts: decisions,
      numbers: (values) => [
        ['code="OK"', values[OK] ?? 0],
        ['code="OVER_LIMIT"', values[OVER_LIMIT] ?? 0],
      ],
    });
    add({
      name: 'weir_would_be_throttled_total',
      help:
        'Descriptors over their limit that were allowed: monitoring, grace period, shadow mode, quota mode, ' +
        'enforce_percent.',
      labels: ['domain', 'rule'],
      meanings: byRule,
      counts: decisions,
      numbers: (values) => [['', values[WOULD_BE_THROTTLED] ?? 0]],
    });
    add({
      name: 'weir_debt_forgiven_total',
      help: 'Charged hits beyond max_debt, which no caller pays, by domain and rule.',
      labels: ['domain', 'rule'],
      meanings: byRule,
      counts: decisions,
      numbers: (values) => ((values[FORGIVEN] ?? 0) > 0 ? [['', values[FORGIVEN] as number]] : []),
    });
    add({
      name: 'weir_controlled_total',
      help: 'Descriptors decided by a block or exemption of an operator, by domain and kind.',
      labels: ['domain', 'kind'],
      meanings: { domain: DOMAIN, kind: CONTROL_KIND },
      counts: this.#controlled,
      numbers: (values) => [['', values[0] ?? 0]],
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
      meanings: { domain: ASKED_DOMAIN },
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
