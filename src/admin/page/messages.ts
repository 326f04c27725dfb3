/*
 * What the page at `/` of the debug port is told, beside what /buckets, /top and /rlconfig?format=json answer. Both
 * `/overview` and `/history` take a POST with a JSON body, as these do; what is wrong is BucketFailure.
 */

/** A server that buckets lie on, as the processes that decide see it. */
export interface OverviewNode {
  /** `main`: that of REDIS_URL; `per_second`: that of REDIS_PERSECOND_URL. */
  readonly redis: 'main' | 'per_second';
  /** Its address, without a login. */
  readonly node: string;
  /** How many processes decide by it now, of how many: where one does not, its circuit breaker is open. */
  readonly up: number;
  readonly of: number;
  /** How long it took lately, on average, milliseconds, the longest of all processes; null before an answer. */
  readonly latency_ms: number | null;
  /** Why it is away, a word such as `timeout`; absent while all decide by it. */
  readonly reason?: string;
}

/** A worker process, with WORKERS above 1. */
export interface OverviewWorker {
  readonly id: number;
  readonly pid: number;
  readonly status: 'SERVING' | 'NOT_SERVING';
  readonly store_up: boolean;
  /** How long it has not answered; absent while it does. */
  readonly silent_seconds?: number;
}

/** How a domain that files name, or a management server, stands. */
export interface OverviewDomain {
  readonly domain: string;
  /** `ok`: as the files say; `kept`: bad now, the last good version is in force; `absent`: bad, not in force. */
  readonly state: 'ok' | 'kept' | 'absent';
  /** The first ten. */
  readonly files: readonly string[];
  /** That of the whole domain, now; absent where it is not in force. */
  readonly phase?: 'monitoring' | 'grace_period' | 'active';
}

/** How a server stands: the answer to `/overview`, whose body is `{}`. */
export interface Overview {
  readonly version: string;
  /** When it was said, seconds since the epoch, and how long weir runs. */
  readonly now: number;
  readonly uptime_seconds: number;
  readonly health: { readonly status: 'SERVING' | 'NOT_SERVING'; readonly reason?: string };
  readonly store: {
    /** `memory`, or Redis and its address. */
    readonly name: string;
    readonly up: boolean;
    /** None in memory. */
    readonly nodes: readonly OverviewNode[];
  };
  /** None where one process does all. */
  readonly workers: readonly OverviewWorker[];
  readonly policy: {
    /** A short hash of the policies in force, or `none`. */
    readonly version: string;
    /** The first 200, by name. */
    readonly domains: readonly OverviewDomain[];
    readonly more_domains: number;
    /** When the policies were read last, seconds since the epoch, and whether all of it was good. */
    readonly reload: { readonly result: 'ok' | 'error'; readonly at: number };
    /** What is wrong with the files now, in full: a sentence each, the first twenty or so. */
    readonly errors: readonly string[];
    readonly more_errors: number;
  };
  /** Whether /top counts buckets (TOP_BUCKETS), and for how many rules rates are kept (HISTORY_RULES). */
  readonly keeps: { readonly top: number; readonly history: number };
}

/** Who asks, and what they may do: `write` includes `read`. */
export interface OverviewCaller {
  /** The name of a token, or `loopback`. */
  readonly by: string;
  readonly right: 'read' | 'write';
}

/**
 * With `accept: text/event-stream`, `/overview` answers events that go on (Server-Sent Events), each with JSON as
 * its data: first `caller` ({@link OverviewCaller}), then `overview` ({@link Overview}), again whenever something
 * but `now` and `uptime_seconds` has changed, looked at each second, or each five seconds where only latencies did;
 * and `point` ({@link HistoryPoint}) for each step of the history. Without that header it answers one {@link
 * Overview}, with the caller and the last point in it.
 */
export interface OverviewAnswer extends Overview {
  readonly caller: OverviewCaller;
  readonly point: HistoryPoint;
}

/** Descriptors per second on average of a step. */
export interface Rates {
  /** Allowed, those of {@link would} included. */
  readonly ok: number;
  readonly denied: number;
  /** Allowed though they did not fit: monitoring, grace period, shadow mode, quota mode, enforce_percent. */
  readonly would: number;
}

/** What of all rules together was answered without a decision of the store, per second on average of a step. */
export interface FailureRates {
  /** Calls that got an error and no decision, as `weir_refused_total` counts them. */
  readonly errors: number;
  /**
   * Descriptors that `on_store_failure` let pass, denied, or had decided by buckets in memory, as
   * `weir_store_failure_answers_total` counts them. They count in `ok` and `denied`, too.
   */
  readonly failure_allow: number;
  readonly failure_deny: number;
  readonly failure_local: number;
}

/** One step of all rules together. */
export interface HistoryPoint extends Rates, FailureRates {
  /** When the step ended, seconds since the epoch. */
  readonly ends: number;
}

/** Rates of a rule, step by step, the oldest first; the last one is of the last step that is over. */
export type RateSeries = Readonly<Record<keyof Rates, readonly number[]>>;

/** The same of all rules together. */
export type AllSeries = Readonly<Record<keyof Rates | keyof FailureRates, readonly number[]>>;

/** A rule by its domain and its place in the tree (`Rule.path`), or `override`, `block`, `allow`, or `other`. */
export interface HistoryRule {
  readonly domain: string;
  readonly rule: string;
}

/** The body of a POST to `/history`. */
export interface HistoryQuestion {
  /** The series of these, 50 at most. Left out: the series of all together, and sums for each rule. */
  readonly rules?: readonly HistoryRule[];
}

/** What became of the descriptors of a rule. */
export interface RuleSums extends HistoryRule {
  /** Descriptors, not rates. */
  readonly minute: Rates;
  readonly hour: Rates;
}

/** The answer to a {@link HistoryQuestion}. */
export interface HistoryAnswer {
  /** Length of a step, seconds. */
  readonly step: number;
  /** When the last step ended, seconds since the epoch. */
  readonly ends: number;
  /** Absent where rules were named. */
  readonly all?: AllSeries;
  /** Sums of all rules that anything was asked of in the last hour, those with most denials of the hour first. */
  readonly sums?: readonly RuleSums[];
  /** For each rule that was named, in order; null where nothing is known of it. */
  readonly series?: readonly (RateSeries | null)[];
  /** Whether some rules count in `all` only, as there were more than HISTORY_RULES. */
  readonly crowded: boolean;
}
