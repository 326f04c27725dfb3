import type { Take, TakeOutcome } from '../../limiter/bucket-store.js';
import type { SeriesBudget } from '../bounded-counters.js';
import { DurationStats, describeDurations } from './duration-stats.js';
import {
  type CountingRules,
  counted,
  countHits,
  RULE_COUNTER_MEANINGS,
  RULE_COUNTERS,
  StatSeries,
  sanitiseStatName,
} from './stat-series.js';

const RULES = 'ratelimit.service.rate_limit.';

/**
 * Maximum length of a name that callers choose. A longer name counts as `other`, without a lookup: for 128 limit
 * overrides with long values, the lookups take 0.2 ms.
 */
const MAX_CALLER_NAME = 256;

/** Name of the overflow series: `other` as a domain and as a key, so that mappings of names to labels find both. */
const OTHER_RULE = 'other.other';
const OTHER_DOMAIN = 'other';

/** Counters of `ratelimit.service` with their meanings, in the order of their values. */
const SERVICE_COUNTERS = {
  config_load_success: 'Successful loads of the policies.',
  config_load_error: 'Failed loads of the policies.',
  global_shadow_mode: 'Requests that were allowed only because of SHADOW_MODE.',
  'call.should_rate_limit.redis_error': 'Requests without a decision because Redis failed.',
  'call.should_rate_limit.service_error':
    'Requests without a decision because they were invalid or no policy was loaded.',
} as const;
/** Counters of a domain without a policy. */
const DOMAIN_COUNTERS = {
  domain_not_found: 'Descriptors of requests with an unknown domain.',
} as const;
const POOL_COUNTERS = {
  cx_total: 'Opened connections to Redis.',
  cx_local_close: 'Closed connections to Redis.',
} as const;

/** Description of a statistic for the manual. `<…>` is a variable part of the name. */
export interface StatDescription {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'timer';
  readonly meaning: string;
}

/** Describes every statistic. */
export function describeStats(): readonly StatDescription[] {
  const counters = (prefix: string, meanings: Readonly<Record<string, string>>): StatDescription[] =>
    Object.entries(meanings).map(([name, meaning]) => ({
      name: `${prefix}${name}`,
      type: 'counter',
      meaning,
    }));
  return [
    ...counters(`${RULES}<domain>.<key>.`, RULE_COUNTER_MEANINGS),
    ...counters(`${RULES}<domain>.`, DOMAIN_COUNTERS),
    ...counters('ratelimit.service.', SERVICE_COUNTERS),
    ...describeDurations('<method>'),
    ...counters('ratelimit.<pool>.', POOL_COUNTERS),
    { name: 'ratelimit.<pool>.cx_active', type: 'gauge', meaning: 'Open connections to Redis.' },
    {
      name: 'ratelimit.localcache.<number>',
      type: 'gauge',
      meaning:
        'Counters of the deny cache (`hitCount`, `missCount`, `entryCount`, …), if LOCAL_CACHE_SIZE_IN_BYTES ' +
        'is set.',
    },
  ];
}

/** Connections of one Redis: counts since the start, except `active`. */
export interface PoolStats {
  /** The reference's name of the pool: `redis_pool` or `redis_per_second_pool`. */
  readonly name: string;
  readonly active: number;
  readonly opened: number;
  readonly closed: number;
}

/** Sources of values that are read on demand. */
export interface ReferenceSources {
  pools(): readonly PoolStats[];
  /** Returns the gauges of `ratelimit.localcache` by name, or undefined without such a cache. */
  localCache(): Readonly<Record<string, number>> | undefined;
}

export interface ReferenceStatsOptions extends CountingRules {
  /** Budget of the series for rules. */
  readonly byRule: SeriesBudget;
  /**
   * Budget of the series whose names depend on requests: limit overrides, names that contain values, unknown domains.
   */
  readonly byCaller: SeriesBudget;
}

/**
 * The statistics of the reference, with its names. A decision of a rule whose series is known costs a few additions. As
 * in the reference, a counter is created when it is first incremented. It is removed only if its rule no longer exists
 * and another series needs its place.
 */
export class ReferenceStats {
  readonly #options: ReferenceStatsOptions;
  readonly #rules = new Map<string, StatSeries>();
  /** Names in {@link #rules} that use the budget of rules. */
  readonly #inRuleBudget = new Set<string>();
  /** Whether this may contain names of rules that no longer exist. */
  #mayContainOldRules = false;
  readonly #domains = new Map<string, StatSeries>();
  readonly #service = new StatSeries('ratelimit.service.', Object.keys(SERVICE_COUNTERS));
  readonly #durations = new Map<string, DurationStats>();
  readonly #pools = new Map<string, StatSeries>();
  /** Series of rules that no longer exist, whose last counts a sink has not read yet. */
  #removed: StatSeries[] = [];
  #otherRule: StatSeries | undefined;
  #otherDomain: StatSeries | undefined;
  #ruleNames: ReadonlySet<string> | (() => Iterable<string>) = new Set();
  #sources: ReferenceSources | undefined;
  readonly #durationFollowers: ((durations: DurationStats) => void)[] = [];

  constructor(options: ReferenceStatsOptions) {
    this.#options = options;
  }

  /** Sets the names of rules. All other names count as chosen by callers. `names` is called when it is first needed. */
  setRuleNames(names: () => Iterable<string>): void {
    this.#ruleNames = names;
    this.#mayContainOldRules = true;
  }

  setSources(sources: ReferenceSources): void {
    this.#sources = sources;
  }

  /**
   * Returns the series of a rule with this name. Callers choose the names of limit overrides (`fromCaller`), so such
   * series have a separate bound.
   */
  seriesOf(stat: string, fromCaller: boolean): StatSeries {
    const isTooLong = fromCaller && stat.length > MAX_CALLER_NAME;
    const known = isTooLong ? undefined : this.#rules.get(stat);
    return known ?? this.#addRule(stat, fromCaller);
  }

  /** Returns whether a series counts the rules that have no series of their own. */
  isOverflow(series: StatSeries): boolean {
    return series === this.#otherRule;
  }

  /** Counts a decided descriptor in the series of its rule; see RuleMetrics.counted. */
  add(series: StatSeries, take: Take, outcome: TakeOutcome | undefined, shadowed: boolean): void {
    countHits(series.values, this.#options, take, outcome, shadowed);
  }

  /** Counts a request whose domain has no policy, with its number of descriptors. */
  unknownDomain(domain: string, descriptors: number): void {
    this.#count(this.#domains.get(domain) ?? this.#addDomain(domain), 0, descriptors);
  }

  configLoaded(success: boolean): void {
    this.#count(this.#service, success ? 0 : 1, 1);
  }

  globalShadow(): void {
    this.#count(this.#service, 2, 1);
  }

  failed(cause: 'service' | 'redis'): void {
    this.#count(this.#service, cause === 'redis' ? 3 : 4, 1);
  }

  durations(method: string): DurationStats {
    let durations = this.#durations.get(method);
    if (durations === undefined) {
      durations = new DurationStats(method);
      this.#durations.set(method, durations);
      for (const follow of this.#durationFollowers) follow(durations);
    }
    return durations;
  }

  /** Calls `follow` with the durations of each method, including methods that are added later. */
  followDurations(follow: (durations: DurationStats) => void): void {
    this.#durationFollowers.push(follow);
    for (const durations of this.#durations.values()) follow(durations);
  }

  allDurations(): Iterable<DurationStats> {
    return this.#durations.values();
  }

  /** Returns every series, with the current values of pools. */
  series(): readonly StatSeries[] {
    const series = [this.#service];
    for (const { calls } of this.#durations.values()) series.push(calls);
    series.push(...this.#readPools());
    for (const rule of this.#rules.values()) series.push(rule);
    if (this.#otherRule !== undefined) series.push(this.#otherRule);
    for (const domain of this.#domains.values()) series.push(domain);
    if (this.#otherDomain !== undefined) series.push(this.#otherDomain);
    return series;
  }

  /** Returns every series for a sink, which takes their deltas. */
  takeSeries(): readonly StatSeries[] {
    const removed = this.#removed;
    this.#removed = [];
    return [...this.series(), ...removed];
  }

  eachCounter(take: (name: string, value: number) => void): void {
    for (const series of this.series()) {
      for (let at = 0; at < series.values.length; at++) {
        const value = series.values[at] as number;
        if (value !== 0) take(series.nameAt(at), value);
      }
    }
  }

  gauges(): readonly (readonly [name: string, value: number])[] {
    const gauges: [string, number][] = [];
    for (const { name, active } of this.#sources?.pools() ?? []) {
      gauges.push([`ratelimit.${name}.cx_active`, active]);
    }
    for (const [name, value] of Object.entries(this.#sources?.localCache() ?? {})) {
      gauges.push([`ratelimit.localcache.${name}`, value]);
    }
    return gauges;
  }

  #readPools(): Iterable<StatSeries> {
    for (const { name, opened, closed } of this.#sources?.pools() ?? []) {
      let series = this.#pools.get(name);
      if (series === undefined) {
        series = new StatSeries(`ratelimit.${name}.`, Object.keys(POOL_COUNTERS));
        this.#pools.set(name, series);
      }
      series.values[0] = opened;
      series.values[1] = closed;
    }
    return this.#pools.values();
  }

  #count(series: StatSeries, at: number, more: number): void {
    series.values[at] = counted(series.values[at] as number, more);
  }

  #addRule(stat: string, fromCaller: boolean): StatSeries {
    const isRule = !fromCaller && this.#isRule(stat);
    if (!(isRule ? this.#takeForRule() : this.#takeForCaller(stat))) {
      this.#otherRule ??= new StatSeries(`${RULES}${OTHER_RULE}.`, RULE_COUNTERS);
      return this.#otherRule;
    }
    const series = new StatSeries(`${RULES}${sanitiseStatName(stat)}.`, RULE_COUNTERS);
    this.#rules.set(stat, series);
    if (isRule) this.#inRuleBudget.add(stat);
    return series;
  }

  #takeForCaller(stat: string): boolean {
    return stat.length <= MAX_CALLER_NAME && this.#options.byCaller.take();
  }

  #takeForRule(): boolean {
    const { byRule } = this.#options;
    if (byRule.take()) return true;
    if (!this.#mayContainOldRules) return false;
    this.#mayContainOldRules = false;
    this.#removed = [];
    for (const stat of this.#inRuleBudget) {
      if (this.#isRule(stat)) continue;
      const series = this.#rules.get(stat);
      if (series !== undefined) this.#removed.push(series);
      this.#inRuleBudget.delete(stat);
      this.#rules.delete(stat);
      byRule.release();
    }
    return byRule.take();
  }

  #addDomain(domain: string): StatSeries {
    if (domain.length > MAX_CALLER_NAME || !this.#options.byCaller.take()) {
      this.#otherDomain ??= new StatSeries(`${RULES}${OTHER_DOMAIN}.`, Object.keys(DOMAIN_COUNTERS));
      return this.#otherDomain;
    }
    const series = new StatSeries(`${RULES}${sanitiseStatName(domain)}.`, Object.keys(DOMAIN_COUNTERS));
    this.#domains.set(domain, series);
    return series;
  }

  #isRule(stat: string): boolean {
    if (typeof this.#ruleNames === 'function') this.#ruleNames = new Set(this.#ruleNames());
    return this.#ruleNames.has(stat);
  }
}
