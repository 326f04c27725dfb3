import type { NamedEntry } from '../entry-sources.js';

/**
 * The result of a replay, as `weir replay --json` prints it (deploy/replay-report.schema.json). Times are RFC 3339 in
 * UTC, and durations are in seconds.
 */
export interface ReplayReport {
  readonly report: 1;
  /** Why the report does not cover the whole log, as a clause: `the replay was interrupted`; absent if it does. */
  readonly partial?: string;
  readonly log: LogSummary;
  /** The policies that were compared: `before` is the other policy, or what the log says. */
  readonly before: { readonly kind: 'policy' | 'log'; readonly name: string };
  readonly after: { readonly name: string };
  /** All requests that a limit of either policy applies to. */
  readonly total: TotalReport;
  /** The rules, with those first that newly deny most requests. */
  readonly rules: readonly RuleReport[];
  /** The candidates of the new policy, which deny no request; absent without any. */
  readonly candidates?: readonly CandidateReport[];
  /** The groups of `--by`, with those first that lose most requests. */
  readonly groups?: GroupsReport;
  readonly timeline: Timeline;
  /** The results of `--max-newly-denied`; empty without such a bound. */
  readonly gates: readonly GateReport[];
  /** Sentences about what probably makes the numbers wrong, such as a misspelled member of the log. */
  readonly warnings: readonly string[];
  /** Sentences about the accuracy of the numbers. */
  readonly notes: readonly string[];
}

/** A number that times of the log determine only up to an interval. */
export interface Interval {
  readonly least: number;
  readonly most: number;
}

/** The decisions about some requests before and after the change. */
export interface Affected {
  readonly requests: number;
  readonly deniedBefore: number;
  readonly deniedAfter: Interval;
  readonly newlyDenied: Interval;
  readonly newlyAllowed: Interval;
  /** When a request was newly denied for the first time. */
  readonly firstDenied?: string;
  /** When a request was newly denied for the last time. */
  readonly lastDenied?: string;
  /** The longest time, in seconds, in which each request of one caller was denied after the change. */
  readonly longestDeniedSeconds: number;
  /** The most requests in one second. */
  readonly peakPerSecond: number;
}

/** The use of limits, as if nothing were denied. */
export interface PeakUse {
  /** The largest share of a limit that a caller needed at any time; 0 if it is unknown. */
  readonly peakUse: number;
}

/** Decisions on all requests. */
export interface TotalReport extends Affected {
  /** Number of requests of which the times in the log do not tell whether they are denied. */
  readonly uncertain: number;
}

export interface LogSummary {
  readonly files: readonly string[];
  readonly format: string;
  readonly lines: number;
  readonly requests: number;
  /** Requests that no limit of either policy applies to. */
  readonly unlimited: number;
  readonly first?: string;
  readonly last?: string;
  /** Unreadable lines by reason, with an example each. */
  readonly unreadable: readonly UnreadableLines[];
  /** Requests that came later than the window allows, and were decided on arrival. */
  readonly late: number;
  /** Requests whose time is more than a week from all others, so that they were decided next to their neighbors. */
  readonly far: number;
  /** Share of the requests in the log, if it is a sample. */
  readonly sample?: number;
}

/** Lines that cannot be read for the same reason. */
export interface UnreadableLines {
  readonly reason: string;
  readonly lines: number;
  readonly example: string;
}

export interface RuleReport extends Affected, PeakUse {
  readonly domain: string;
  /** `Rule.path`. */
  readonly rule: string;
  /** The limit in words: `100 per minute`. */
  readonly limit: string;
  /** Requests over the limit that phase, shadow mode or percentage allowed, or over a soft limit. */
  readonly wouldBeThrottled: number;
  /** Number of callers, each with its own count of requests. */
  readonly callers: number;
  /** Number of callers with at least one denial. */
  readonly deniedCallers: number;
  /**
   * The capacity that would have denied none, and at most a thousandth and a hundredth of the requests. It is the size
   * of a bucket with the rule's refill, the requests of a window, or the slots of a concurrency limit.
   * Absent if the log cannot tell, for example because it is a sample.
   */
  readonly capacity?: { readonly none: number; readonly thousandth: number; readonly hundredth: number };
  /** Callers by the largest share of the limit that they needed at any time, in ascending order. */
  readonly use: readonly UseStep[];
}

/**
 * The decisions of a `candidate`, in the order of the log. Each member is a number of descriptors, as in
 * `weir_candidate_decisions_total`.
 */
export interface CandidateReport {
  readonly domain: string;
  /** `Rule.path` of its descriptor in the policy. */
  readonly rule: string;
  readonly requests: number;
  /** Number that the candidate would have denied. */
  readonly denied: number;
  /** Number of denied descriptors that were allowed in fact. */
  readonly newlyDenied: number;
  /** Number that were denied in fact, and that the candidate would have allowed. */
  readonly newlyAllowed: number;
}

/** Number of callers whose largest use is at most `upTo` times the limit, and above the previous step. */
export interface UseStep {
  /** Absent for the last step: no upper bound. */
  readonly upTo?: number;
  readonly callers: number;
}

export interface GroupReport extends Affected, PeakUse {
  readonly value: string;
  /** Indexes of the steps in {@link Timeline} in which requests were newly denied, in ascending order. */
  readonly deniedSteps: readonly number[];
}

export interface GroupsReport {
  /** The entry key of `--by`. */
  readonly by: string;
  /** The header or query parameter that the entries come from, if they all come from one. */
  readonly source?: string;
  readonly count: number;
  /** Number of groups that would lose requests. */
  readonly affected: Interval;
  readonly shown: readonly GroupReport[];
}

/** The result of a gate. `undecided` means that the log does not tell whether the bound is kept. */
export type GateVerdict = 'passed' | 'undecided' | 'failed';

/** The requests that a gate applies to: those of one value of an entry key; `*` means those of each value. */
export interface GateGroup extends NamedEntry {
  readonly value: string;
}

/** The result of one `--max-newly-denied`. */
export interface GateReport {
  readonly name: 'max-newly-denied';
  /** Absent if the bound applies to all requests. */
  readonly group?: GateGroup;
  /** The bound as written, such as `0.1%`. */
  readonly bound: string;
  readonly verdict: GateVerdict;
  /** Why the gate is undecided, as a clause. */
  readonly reason?: string;
  /** A clause that restricts a passed gate. */
  readonly remark?: string;
  /** Number of requests that the gate applies to; for `*`, of the value that loses most. */
  readonly requests: number;
  readonly newlyDenied: Interval;
  /** Number of values, and of those that exceed the bound; only for `*`. */
  readonly values?: { readonly count: number; readonly exceeding: Interval };
  /** The groups or rules that lose most, if the gate failed. */
  readonly offenders: readonly Offender[];
}

/** A group of callers, or a rule, that loses requests. */
export interface Offender {
  readonly group?: GateGroup;
  readonly rule?: { readonly domain: string; readonly rule: string };
  readonly requests: number;
  readonly newlyDenied: Interval;
}

/** Requests over time, in steps of equal length. Denials are the most that the log allows. */
export interface Timeline {
  readonly start: string;
  readonly stepSeconds: number;
  readonly requests: readonly number[];
  readonly deniedBefore: readonly number[];
  readonly deniedAfter: readonly number[];
}
