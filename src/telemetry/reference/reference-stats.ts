import type { TakeItem, TakeOutcome } from '../../limiter/bucket-store.js';
import type { SeriesLimit } from '../bounded-counters.js';
import { type CountingRules, countHits, RULE_COUNTER_MEANINGS, RULE_COUNTERS } from './count-hits.js';
import { DurationStats, describeDurations } from './duration-stats.js';
import { sanitiseStatName } from './stat-name.js';
import { counted, StatSeries } from './stat-series.js';

const RULES = 'ratelimit.service.rate_limit.';

/** So many series are looked at in one go. */
const SLICE = 64;

/** Longest name that callers may choose; a longer one counts as `other`. */
const MAX_CALLER_NAME = 512;

/**
 * Name of what no series is left for: as a domain and, for rules, as its key, so that mappings of names to labels find
 * both.
 */
const OTHER_RULE = 'other.other';
const OTHER_DOMAIN = 'other';

/** The counters of `ratelimit.service`, in the order of their values, and what each says. */
const SERVICE_COUNTERS = {
  config_load_success: 'Successful loads of the policies.',
  config_load_error: 'Failed loads of the policies.',
  global_shadow_mode: 'Requests that only SHADOW_MODE allowed.',
  'call.should_rate_limit.redis_error': 'Requests without a decision because Redis failed.',
  'call.should_rate_limit.service_error':
    'Requests without a decision because they were invalid or no policy was loaded.',
} as const;
/** Those of a domain that no policy has. */
const DOMAIN_COUNTERS = {
  domain_not_found: 'Descriptors of requests with an unknown domain.',
} as const;
/** Those of a pool. */
const POOL_COUNTERS = {
  cx_total: 'Opened connections to Redis.',
  cx_local_close: 'Closed connections to Redis.',
} as const;

/** A statistic as the manual shows it; `<…>` stands for what differs. */
export interface StatDescription {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'timer';
  readonly meaning: string;
}

/** Every statistic there is. */
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

/** Connections of one Redis, since the start but for `active`. */
export interface PoolStats {
  /** The reference's name of the pool: `redis_pool`, `redis_per_second_pool`. */
  readonly name: string;
  readonly active: number;
  readonly opened: number;
  readonly closed: number;
}

/** Numbers that are read when somebody asks for them. */
export interface ReferenceSources {
  pools(): readonly PoolStats[];
  /** Gauges of `ratelimit.localcache` by name; undefined without such a cache. */
  localCache(): Readonly<Record<string, number>> | undefined;
}

export interface ReferenceStatsOptions extends CountingRules {
  /** Series by rule. */
  readonly byRule: SeriesLimit;
  /** Series by names that callers choose: limit overrides, values in names, unknown domains. */
  readonly byCaller: SeriesLimit;
}

/**
 * The statistics of the reference, under its names. A decision costs one look-up by name and a few additions. Counters
 * come into being when they first count, as there, and only go when their rule is no more and another one needs the
 * room.
 */
export class ReferenceStats {
  readonly #options: ReferenceStatsOptions;
  readonly #rules = new Map<string, StatSeries>();
  /** Those of {@link #rules} that the budget of rules paid for. */
  readonly #paidAsRules = new Set<string>();
  /** Whether rules may be among them that are no more. */
  #mayHoldOldRules = false;
  readonly #domains = new Map<string, StatSeries>();
  readonly #service = new StatSeries('ratelimit.service.', Object.keys(SERVICE_COUNTERS));
  readonly #durations = new Map<string, DurationStats>();
  readonly #pools = new Map<string, StatSeries>();
  /** Every series that counted since sinks were last told. */
  #changed: StatSeries[] = [];
  #otherRule: StatSeries | undefined;
  #otherDomain: StatSeries | undefined;
  #ruleNames: ReadonlySet<string> | (() => Iterable<string>) = new Set();
  #sources: ReferenceSources | undefined;
  readonly #durationFollowers: ((durations: DurationStats) => void)[] = [];

  constructor(options: ReferenceStatsOptions) {
    this.#options = options;
  }

  /**
   * Says which names are rules' own; any other name is a caller's making. `names` is asked when the answer is first
   * needed.
   */
  rulesAre(names: () => Iterable<string>): void {
    this.#ruleNames = names;
    this.#mayHoldOldRules = true;
  }

  /** Says where pools and cache are. */
  readFrom(sources: ReferenceSources): void {
    this.#sources = sources;
  }

  /** A descriptor was decided; see ReferenceCounts.counted. */
  counted(
    stat: string,
    fromCaller: boolean,
    take: TakeItem,
    outcome: TakeOutcome | undefined,
    shadowed: boolean,
  ): void {
    const series = this.#rules.get(stat) ?? this.#addRule(stat, fromCaller);
    if (!series.changed) this.#note(series);
    countHits(series.values, this.#options, take, outcome, shadowed);
  }

  /** A request of so many descriptors named a domain that no policy has. */
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

  /** Calls of a gRPC method. */
  durations(method: string): DurationStats {
    let durations = this.#durations.get(method);
    if (durations === undefined) {
      durations = new DurationStats(method);
      this.#durations.set(method, durations);
      for (const follow of this.#durationFollowers) follow(durations);
    }
    return durations;
  }

  /** `follow` is handed the durations of each method, those of methods to come as well. */
  followDurations(follow: (durations: DurationStats) => void): void {
    this.#durationFollowers.push(follow);
    for (const durations of this.#durations.values()) follow(durations);
  }

  allDurations(): Iterable<DurationStats> {
    return this.#durations.values();
  }

  /** Every series, those of pools as they are now. */
  *series(): Generator<StatSeries> {
    yield this.#service;
    for (const { calls } of this.#durations.values()) yield calls;
    yield* this.#readPools();
    yield* this.#rules.values();
    if (this.#otherRule !== undefined) yield this.#otherRule;
    yield* this.#domains.values();
    if (this.#otherDomain !== undefined) yield this.#otherDomain;
  }

  /** The series that may have counted since the last time, each to be asked for its deltas. */
  takeChanged(): readonly StatSeries[] {
    const changed = this.#changed;
    this.#changed = [];
    for (const { calls } of this.#durations.values()) changed.push(calls);
    changed.push(...this.#readPools());
    return changed;
  }

  /** Every counter that counted; '' is a pause, as series may have counted nothing: hits of 0 are a mere look. */
  *counters(): Generator<readonly [name: string, value: number] | ''> {
    let looked = 0;
    for (const series of this.series()) {
      if (++looked % SLICE === 0) yield '';
      for (let at = 0; at < series.values.length; at++) {
        const value = series.values[at] as number;
        if (value !== 0) yield [series.nameAt(at), value];
      }
    }
  }

  /** What goes up and down, as it is now. */
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
    if (!series.changed) this.#note(series);
    series.values[at] = counted(series.values[at] as number, more);
  }

  #note(series: StatSeries): void {
    series.changed = true;
    this.#changed.push(series);
  }

  #addRule(stat: string, fromCaller: boolean): StatSeries {
    const isRule = !fromCaller && this.#isRule(stat);
    if (!(isRule ? this.#takeForRule() : this.#takeForCaller(stat))) {
      this.#otherRule ??= new StatSeries(`${RULES}${OTHER_RULE}.`, RULE_COUNTERS);
      return this.#otherRule;
    }
    const series = new StatSeries(`${RULES}${sanitiseStatName(stat)}.`, RULE_COUNTERS);
    this.#rules.set(stat, series);
    if (isRule) this.#paidAsRules.add(stat);
    return series;
  }

  #takeForCaller(stat: string): boolean {
    return stat.length <= MAX_CALLER_NAME && this.#options.byCaller.take();
  }

  #takeForRule(): boolean {
    const { byRule } = this.#options;
    if (byRule.take()) return true;
    if (!this.#mayHoldOldRules) return false;
    this.#mayHoldOldRules = false;
    for (const stat of this.#paidAsRules) {
      if (this.#isRule(stat)) continue;
      this.#paidAsRules.delete(stat);
      this.#rules.delete(stat);
      byRule.giveBack();
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
