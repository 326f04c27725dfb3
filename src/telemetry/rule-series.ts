import type { Take, TakeOutcome } from '../limiter/bucket-store.js';
import type { BoundedCounters } from './bounded-counters.js';
import type { ReferenceStats } from './reference/reference-stats.js';
import type { StatSeries } from './reference/stat-series.js';

/** Indexes of the values of a rule's series in `weir_decisions_total` and the families next to it. */
export const OK = 0;
export const OVER_LIMIT = 1;
export const WOULD_BE_THROTTLED = 2;
export const FORGIVEN = 3;
/** First of three values that {@link takeNewCounts} last reported. */
const REPORTED = 4;
export const DECISION_SLOTS = 7;

export interface RuleCounts {
  readonly owner: object;
  readonly decisions: BoundedCounters;
  readonly reference: ReferenceStats;
}

export interface CountedNames {
  readonly domain: string;
  /** `Rule.path`, or `override`. */
  readonly rulePath: string;
  /** Its name in the reference's statistics; '' if it contains values of requests. */
  readonly statName: string;
  /** Whether callers choose the name, as for limit overrides. */
  readonly fromCaller: boolean;
}

/**
 * The `RuleMetrics` of the service: counts the decisions of one rule. Each series is created when it is first needed,
 * as in the reference, and found only once. The series of rules beyond METRICS_MAX_SERIES is looked up each time,
 * because a reload may make room.
 */
export class RuleSeries {
  readonly owner: object;
  readonly #counts: RuleCounts;
  readonly #names: CountedNames;
  #decisions: number[] | undefined;
  #series: StatSeries | undefined;

  constructor(counts: RuleCounts, names: CountedNames) {
    this.owner = counts.owner;
    this.#counts = counts;
    this.#names = names;
  }

  countDecision(overLimit: boolean, wouldBeThrottled: boolean): void {
    const values = this.#decisions ?? this.#findDecisions();
    const code = overLimit ? OVER_LIMIT : OK;
    values[code] = (values[code] as number) + 1;
    if (wouldBeThrottled) values[WOULD_BE_THROTTLED] = (values[WOULD_BE_THROTTLED] as number) + 1;
  }

  /** Counts a descriptor in the reference's statistics, under `statName` if its own one is ''. */
  countReference(statName: string, take: Take, outcome: TakeOutcome | undefined, shadowed: boolean): void {
    this.#counts.reference.add(this.#series ?? this.#findSeries(statName), take, outcome, shadowed);
  }

  #findDecisions(): number[] {
    const { decisions } = this.#counts;
    const values = decisions.series(this.#names.domain, this.#names.rulePath);
    if (!decisions.isOverflow(values)) this.#decisions = values;
    return values;
  }

  #findSeries(asked: string): StatSeries {
    const { statName, fromCaller } = this.#names;
    const { reference } = this.#counts;
    const series = reference.seriesOf(statName === '' ? asked : statName, fromCaller);
    if (statName !== '' && !reference.isOverflow(series)) this.#series = series;
    return series;
  }
}

/** Number of descriptors of a rule by result, since the previous read. */
export interface RateCounts {
  readonly domain: string;
  /** `Rule.path`, `override`, or `other`. */
  readonly rule: string;
  /** Allowed, including {@link would}. */
  readonly ok: number;
  readonly denied: number;
  /** Allowed although the limit was exceeded. */
  readonly would: number;
}

/**
 * Passes what the decisions in `counts` have counted since the previous call to `take`, without unchanged series. Only
 * one reader may call it, because each count is reported once.
 */
export function takeNewCounts(counts: BoundedCounters, take: (counts: RateCounts) => void): void {
  counts.forEachMutable((domain, rule, values) => {
    const ok = increase(values, OK, REPORTED);
    const denied = increase(values, OVER_LIMIT, REPORTED + 1);
    const would = increase(values, WOULD_BE_THROTTLED, REPORTED + 2);
    if (ok + denied > 0) take({ domain, rule, ok, denied, would });
  });
}

function increase(values: number[], at: number, reported: number): number {
  const value = values[at] as number;
  const before = values[reported] as number;
  values[reported] = value;
  return value - before;
}
