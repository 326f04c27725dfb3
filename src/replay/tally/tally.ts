import type { TrackedBucket } from '../decide/tracked-bucket.js';
import {
  type CandidateDecision,
  type LimitingRule,
  RequestVerdict,
  type Verdict,
} from '../decide/verdict.js';
import type { RuleReport, Timeline, TotalReport } from '../report/report.js';
import { AffectedCount } from './affected-count.js';
import { CandidateTally } from './candidate-tally.js';
import type { GroupTally } from './group-tally.js';
import { RuleTally } from './rule-tally.js';
import { TimelineCount } from './timeline-count.js';

const NO_CANDIDATES: readonly CandidateDecision[] = [];

/** Counts the decisions of a replay: in total, by rule, by group of callers, and over time. */
export class Tally {
  readonly #total = new AffectedCount();
  readonly #rules = new Map<LimitingRule, RuleTally>();
  readonly candidates = new CandidateTally();
  readonly groups: readonly GroupTally[];
  readonly #timeline = new TimelineCount();
  /** Number of requests that no limit applies to. */
  unlimited = 0;
  /** Number of requests. */
  requests = 0;
  /** Number of requests with an uncertain verdict. */
  uncertain = 0;

  /** `groups`: the groups that are counted, by entry key. */
  constructor(groups: readonly GroupTally[] = []) {
    this.groups = groups;
  }

  /**
   * Counts a request with a final verdict. `before` is `after` too, if both policies certainly decide it equally.
   * `values` are those of its groups, in their order.
   */
  add(
    startMicros: number,
    before: Verdict,
    after: RequestVerdict,
    values: readonly (string | undefined)[],
  ): void {
    this.requests++;
    for (const candidate of after.candidates ?? NO_CANDIDATES) this.candidates.add(candidate);
    if (after.open !== undefined || before.open !== undefined) this.uncertain++;
    const metLimits =
      after.limits.length > 0 || (before instanceof RequestVerdict && before.limits.length > 0);
    if (!metLimits && !before.denied) {
      this.unlimited++;
      return;
    }
    this.#total.add(startMicros, before, after, after);
    const step = this.#timeline.add(startMicros, before.mayBeDenied, after.mayBeDenied);
    for (const limit of after.limits)
      if (limit.rule !== undefined) this.#ruleOf(limit.rule).add(startMicros, before, after, limit);
    for (let at = 0; at < values.length; at++) {
      const value = values[at];
      if (value !== undefined) this.groups[at]?.add(value, startMicros, before, after, step, this.#timeline);
    }
  }

  #ruleOf(rule: LimitingRule): RuleTally {
    let tally = this.#rules.get(rule);
    if (tally === undefined) {
      tally = new RuleTally(rule);
      this.#rules.set(rule, tally);
    }
    return tally;
  }

  /** Returns the counts of all requests that a limit applies to. */
  total(): TotalReport {
    let longest = 0;
    for (const { longestDeniedMicros } of this.groups) longest = Math.max(longest, longestDeniedMicros);
    for (const rule of this.#rules.values()) longest = Math.max(longest, rule.longestDeniedMicros);
    this.#total.longestDeniedMicros = longest;
    return { ...this.#total.report(), uncertain: this.uncertain };
  }

  /** Returns the rules, with those first that newly deny most requests. For `knowsCapacity`, see RuleTally.report. */
  rules(buckets: Iterable<TrackedBucket>, knowsCapacity: boolean): readonly RuleReport[] {
    for (const bucket of buckets) this.#rules.get(bucket.rule)?.addCaller(bucket);
    return [...this.#rules.values()]
      .toSorted((one, other) => other.mostNewlyDenied - one.mostNewlyDenied)
      .map((rule) => rule.report(knowsCapacity));
  }

  timeline(): Timeline {
    return this.#timeline.report();
  }
}
