import type { TrackedBucket } from '../decide/tracked-bucket.js';
import { type LimitingRule, RequestVerdict, type Verdict } from '../decide/verdict.js';
import type { GroupReport, GroupsReport, RuleReport, Timeline, TotalReport } from '../report/report.js';
import { AffectedCount } from './affected-count.js';
import type { DenialRun } from './denial-run.js';
import { RuleTally } from './rule-tally.js';
import { type StepSet, TimelineCount } from './timeline-count.js';

/** Maximum number of groups that are counted. Requests of others are counted without a group. */
export const MAX_GROUPS = 1_000_000;

class Group implements DenialRun {
  readonly count = new AffectedCount();
  deniedSinceMicros: number | undefined;
  deniedSteps: StepSet | undefined;
}

/** Counts the decisions of a replay: in total, by rule, by group of callers, and over time. */
export class Tally {
  readonly #total = new AffectedCount();
  readonly #rules = new Map<LimitingRule, RuleTally>();
  readonly #groups = new Map<string, Group>();
  readonly #timeline = new TimelineCount();
  /** Number of requests that no limit applies to. */
  unlimited = 0;
  /** Number of requests. */
  requests = 0;
  /** Number of requests with an uncertain verdict. */
  uncertain = 0;
  /** Whether there were more groups than {@link MAX_GROUPS}. */
  hasAllGroups = true;

  /** Counts a request with a final verdict. `by` is the value of its group. */
  add(startMicros: number, before: Verdict, after: RequestVerdict, by: string | undefined): void {
    this.requests++;
    if (after.open !== undefined || before.open !== undefined) this.uncertain++;
    const metLimits =
      after.limits.length > 0 || (before instanceof RequestVerdict && before.limits.length > 0);
    if (!metLimits && !before.denied) {
      this.unlimited++;
      return;
    }
    this.#total.add(startMicros, before, after, after);
    const step = this.#timeline.add(startMicros, before.denied, after.mayBeDenied);
    for (const limit of after.limits)
      if (limit.rule !== undefined) this.#ruleOf(limit.rule).add(startMicros, before, after, limit);
    const group = by === undefined ? undefined : this.#groupOf(by);
    if (group === undefined) return;
    group.count.add(startMicros, before, after, after, group);
    if (!after.mayBeDenied || before.isDenied) return;
    group.deniedSteps ??= this.#timeline.newSet();
    group.deniedSteps.add(step);
  }

  #ruleOf(rule: LimitingRule): RuleTally {
    let tally = this.#rules.get(rule);
    if (tally === undefined) {
      tally = new RuleTally(rule);
      this.#rules.set(rule, tally);
    }
    return tally;
  }

  #groupOf(value: string): Group | undefined {
    const known = this.#groups.get(value);
    if (known !== undefined) return known;
    if (this.#groups.size >= MAX_GROUPS) {
      this.hasAllGroups = false;
      return undefined;
    }
    const group = new Group();
    this.#groups.set(value, group);
    return group;
  }

  /** Returns the counts of all requests that a limit applies to. */
  total(): TotalReport {
    const callers = [...this.#groups.values()].map(({ count }) => count);
    let longest = 0;
    for (const { longestDeniedMicros } of callers) longest = Math.max(longest, longestDeniedMicros);
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

  /** Returns the `shown` groups that lose most requests, and those in `named`. */
  groups(by: string, shown: number, named: ReadonlySet<string>): GroupsReport {
    const sorted = [...this.#groups].toSorted(
      ([, one], [, other]) =>
        other.count.newlyDenied.most - one.count.newlyDenied.most ||
        other.count.requests - one.count.requests,
    );
    let least = 0;
    let most = 0;
    for (const [, { count }] of sorted) {
      if (count.newlyDenied.least > 0) least++;
      if (count.newlyDenied.most > 0) most++;
    }
    return {
      by,
      count: sorted.length,
      affected: { least, most },
      shown: sorted
        .filter(([value], at) => at < shown || named.has(value))
        .map(([value, group]): GroupReport => {
          return { value, ...group.count.report(), deniedSteps: group.deniedSteps?.steps() ?? [] };
        }),
    };
  }

  get hasGroups(): boolean {
    return this.#groups.size > 0;
  }

  timeline(): Timeline {
    return this.#timeline.report();
  }
}
