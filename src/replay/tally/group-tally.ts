import type { RequestVerdict, Verdict } from '../decide/verdict.js';
import type { CountedGroups } from '../report/gates.js';
import type { GroupReport, GroupsReport } from '../report/report.js';
import { AffectedCount } from './affected-count.js';
import type { DenialRun } from './denial-run.js';
import { shareOfLimit } from './rule-tally.js';
import type { StepSet, TimelineCount } from './timeline-count.js';

/** Maximum number of groups that are counted. Requests of others are counted without a group. */
export const MAX_GROUPS = 1_000_000;

class Group extends AffectedCount implements DenialRun {
  deniedSinceMicros: number | undefined;
  deniedSteps: StepSet | undefined;
  peakUse = 0;
}

/** Counts requests by group of callers: by the value of an entry key. */
export class GroupTally implements CountedGroups {
  readonly key: string;
  readonly #only: ReadonlySet<string> | undefined;
  readonly #groups = new Map<string, Group>();
  isComplete = true;

  /** `only`: the values to count; undefined means all. */
  constructor(key: string, only: ReadonlySet<string> | undefined) {
    this.key = key;
    this.#only = only;
  }

  /** Counts a request of the group `value` in a step of the timeline. */
  add(
    value: string,
    startMicros: number,
    before: Verdict,
    after: RequestVerdict,
    step: number,
    timeline: TimelineCount,
  ): void {
    const group = this.#groupOf(value);
    if (group === undefined) return;
    group.add(startMicros, before, after, after, group);
    for (const { wantedCapacity, take } of after.limits) {
      const use = shareOfLimit(wantedCapacity, take.rate);
      if (use > group.peakUse) group.peakUse = use;
    }
    if (!after.mayBeDenied || before.isDenied || before === after) return;
    group.deniedSteps ??= timeline.newSet();
    group.deniedSteps.add(step);
  }

  #groupOf(value: string): Group | undefined {
    const known = this.#groups.get(value);
    if (known !== undefined) return known;
    if (this.#only?.has(value) === false) return undefined;
    if (this.#groups.size >= MAX_GROUPS) {
      this.isComplete = false;
      return undefined;
    }
    const group = new Group();
    this.#groups.set(value, group);
    return group;
  }

  get isEmpty(): boolean {
    return this.#groups.size === 0;
  }

  get longestDeniedMicros(): number {
    let longest = 0;
    for (const { longestDeniedMicros } of this.#groups.values())
      if (longestDeniedMicros > longest) longest = longestDeniedMicros;
    return longest;
  }

  lossOf(value: string): AffectedCount | undefined {
    return this.#groups.get(value);
  }

  losses(): Iterable<readonly [string, AffectedCount]> {
    return this.#groups;
  }

  /** Returns the `shown` groups that lose most, and then those that come closest to a limit. */
  report(shown: number): GroupsReport {
    const sorted = [...this.#groups].toSorted(
      ([, one], [, other]) =>
        other.newlyDenied.most - one.newlyDenied.most ||
        other.peakUse - one.peakUse ||
        other.requests - one.requests,
    );
    let least = 0;
    let most = 0;
    for (const [, { newlyDenied }] of sorted) {
      if (newlyDenied.least > 0) least++;
      if (newlyDenied.most > 0) most++;
    }
    return {
      by: this.key,
      count: sorted.length,
      affected: { least, most },
      shown: sorted.slice(0, shown).map(([value, group]): GroupReport => {
        const { peakUse } = group;
        return { value, ...group.report(), peakUse, deniedSteps: group.deniedSteps?.steps() ?? [] };
      }),
    };
  }
}
