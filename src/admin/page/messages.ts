/*
 * Messages for the page at `/` of the debug port, except those of /buckets, /top and /rlconfig?format=json. `/overview`
 * and `/history` accept a POST with a JSON body. Errors are answered with a BucketFailure.
 */

/** A server that stores buckets, as seen by the processes that decide. */
export interface OverviewNode {
  /** `main`: the Redis of REDIS_URL; `per_second`: the Redis of REDIS_PERSECOND_URL. */
  readonly redis: 'main' | 'per_second';
  /** Address without credentials. */
  readonly node: string;
  /**
   * Number of processes that can use the server, and number of all processes. A process that cannot has an open circuit
   * breaker.
   */
  readonly up: number;
  readonly of: number;
  /** Recent average latency in milliseconds, the highest of all processes; null before the first answer. */
  readonly latency_ms: number | null;
  /** Reason why the server is unavailable, such as `timeout`; absent while all processes can use it. */
  readonly reason?: string;
}

/** A worker, with WORKERS above 1. */
export interface OverviewWorker {
  readonly id: number;
  readonly pid: number;
  readonly status: 'SERVING' | 'NOT_SERVING';
  readonly store_up: boolean;
  /** Seconds since the worker stopped answering; absent while it answers. */
  readonly silent_seconds?: number;
  /** Version of the policies of the worker, if it has others than the server. */
  readonly policy?: string;
}

/** State of a domain of the policy files or of the management server. */
export interface OverviewDomain {
  readonly domain: string;
  /**
   * `ok`: in sync with the files. `kept`: invalid, the previous version is in effect. `absent`: invalid, no version is
   * in effect.
   */
  readonly state: 'ok' | 'kept' | 'absent';
  /** The first ten files. */
  readonly files: readonly string[];
  /** Current phase of the domain; absent if the domain is not in effect. */
  readonly phase?: 'monitoring' | 'grace_period' | 'active';
}

/** State of the server: the answer to `/overview`, whose body is `{}`. */
export interface Overview {
  readonly version: string;
  /** Time of the answer in seconds since the epoch, and uptime in seconds. */
  readonly now: number;
  readonly uptime_seconds: number;
  readonly health: { readonly status: 'SERVING' | 'NOT_SERVING'; readonly reason?: string };
  readonly store: {
    /** `memory`, or the addresses of Redis. */
    readonly name: string;
    readonly up: boolean;
    /** Empty in memory. */
    readonly nodes: readonly OverviewNode[];
  };
  /** Empty without workers. */
  readonly workers: readonly OverviewWorker[];
  readonly policy: {
    /** Short hash of the policies in effect, or `none`. */
    readonly version: string;
    /** The first 200 domains, by name. */
    readonly domains: readonly OverviewDomain[];
    readonly more_domains: number;
    /** Result and time (seconds since the epoch) of the last reload. */
    readonly reload: { readonly result: 'ok' | 'error'; readonly at: number };
    /** Errors of the current files, one sentence each, about the first twenty. */
    readonly errors: readonly string[];
    readonly more_errors: number;
  };
  /** Number of buckets that /top counts (TOP_BUCKETS), and of rules in the history (HISTORY_RULES). */
  readonly keeps: { readonly top: number; readonly history: number };
}

/** The caller and its right; `write` includes `read`. */
export interface OverviewCaller {
  /** Name of a token, or `loopback`. */
  readonly by: string;
  readonly right: 'read' | 'write';
}

/**
 * Answer to `/overview` with the caller and the last point. With `accept: text/event-stream`, the answer is a stream of
 * Server-Sent Events with JSON data instead: `caller` ({@link OverviewCaller}) once, `overview` ({@link Overview})
 * after each change, and `point` ({@link HistoryPoint}) after each step of the history. weir checks for changes every
 * second, or every five seconds if only latencies changed. `now` and `uptime_seconds` do not count as changes.
 */
export interface OverviewAnswer extends Overview {
  readonly caller: OverviewCaller;
  readonly point: HistoryPoint;
}

/** Average descriptors per second in a step. */
export interface Rates {
  /** Allowed, including {@link would}. */
  readonly ok: number;
  readonly denied: number;
  /** Allowed although the limit was exceeded: monitoring, grace period, shadow mode, quota mode, enforce_percent. */
  readonly would: number;
}

/** Average number of answers per second that the store did not decide, in a step, for all rules together. */
export interface FailureRates {
  /** Calls that got an error, as in `weir_refused_total`. */
  readonly errors: number;
  /**
   * Descriptors that `on_store_failure` allowed, denied, or decided with local buckets, as in
   * `weir_store_failure_answers_total`. `ok` and `denied` include them.
   */
  readonly failure_allow: number;
  readonly failure_deny: number;
  readonly failure_local: number;
}

/** A step of all rules together. */
export interface HistoryPoint extends Rates, FailureRates {
  /** End of the step, in seconds since the epoch. */
  readonly ends: number;
}

/** Rates of a rule in each complete step, oldest first. */
export type RateSeries = Readonly<Record<keyof Rates, readonly number[]>>;

/** Rates of all rules together in each complete step, oldest first. */
export type AllSeries = Readonly<Record<keyof Rates | keyof FailureRates, readonly number[]>>;

/** A rule, by its domain and `Rule.path`, `override`, or `other`. */
export interface HistoryRule {
  readonly domain: string;
  readonly rule: string;
}

/** Body of a POST to `/history`. */
export interface HistoryQuestion {
  /**
   * Rules whose series are returned, at most 50. If absent, the answer has the series of all rules together, and the
   * sums of each rule.
   */
  readonly rules?: readonly HistoryRule[];
}

/** Sums of the descriptors of a rule. */
export interface RuleSums extends HistoryRule {
  /** Numbers of descriptors, not rates. */
  readonly minute: Rates;
  readonly hour: Rates;
}

/** Answer to a {@link HistoryQuestion}. */
export interface HistoryAnswer {
  /** Length of a step in seconds. */
  readonly step: number;
  /** End of the last step, in seconds since the epoch. */
  readonly ends: number;
  /** Absent if the question names rules. */
  readonly all?: AllSeries;
  /** Sums of all rules with descriptors in the last hour. Rules with most denials come first. */
  readonly sums?: readonly RuleSums[];
  /** Series of each named rule, in the same order; null for an unknown rule. */
  readonly series?: readonly (RateSeries | null)[];
  /** Whether some rules count only in `all`, because there were more than HISTORY_RULES. */
  readonly crowded: boolean;
}
