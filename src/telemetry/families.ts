import type { StorageFailure } from '../limiter/bucket-store.js';
import type { RedisRole, StoreFailureAnswer, StoreFault } from '../limiter/failure-policy.js';

/*
 * All metrics of `/metrics` with the prefix `weir_`. The manual's tables are generated from this file.
 */

export interface LabelMeaning {
  readonly meaning: string;
  /** Meaning of each value, if all values are known. */
  readonly values?: Readonly<Record<string, string>>;
}

/** Labels of a metric, in their order. */
export type LabelMeanings<Label extends string = string> = Readonly<Record<Label, LabelMeaning>>;

export interface FamilyDescription {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels?: LabelMeanings;
  /**
   * How the values of several processes are aggregated, as in the Prometheus client: `sum`, `first`, `min`, or `max`.
   * Default: `sum`.
   */
  readonly aggregator?: string;
}

/* Labels of several metrics. */
const DOMAIN: LabelMeaning = {
  meaning: "The policy's domain; `other` after METRICS_MAX_SERIES is reached.",
};
/** For metrics with few series. */
const KNOWN_DOMAIN: LabelMeaning = { meaning: "The policy's domain." };
const RULE: LabelMeaning = {
  meaning:
    "The rule's path, as `weir explain` shows it. `override`: a limit in the request. `other`: METRICS_MAX_SERIES " +
    'is reached.',
};
const BY_RULE = { domain: DOMAIN, rule: RULE };
const REDIS_ROLES: Readonly<Record<RedisRole, string>> = {
  main: 'REDIS_URL',
  per_second: 'REDIS_PERSECOND_URL',
};
const REDIS_ROLE: LabelMeaning = {
  meaning: 'The setting with the address of this Redis.',
  values: REDIS_ROLES,
};
const PLAN_SOURCE: LabelMeaning = {
  meaning: 'The address in `plans.from`, without its query, or a file that has never been valid.',
};

/* Values that code uses, too. Types check that they are complete. */

/** Requests that fail because the store is `full` count as given up, not here. */
const STORE_FAILURES: Readonly<Record<Exclude<StorageFailure, 'full'>, string>> = {
  timeout: "Redis did not answer within REDIS_TIMEOUT or the caller's deadline",
  disconnected: 'no connection to Redis',
  overloaded: 'Redis does not answer, and too many limits are waiting for Redis (REDIS_MAX_IN_FLIGHT)',
  breaker_open: 'Redis failed several times in a row, so the circuit breaker is open',
  rejected: 'Redis returned an error',
  broken: 'a bug in weir; see weir_broken_invariants_total',
};
const FAILURE_POLICIES: Readonly<Record<StoreFailureAnswer, string>> = {
  error: 'the call got an error',
  allow: 'the descriptor was allowed',
  deny: 'the descriptor was denied',
  local: 'local buckets decided the request',
};
const REDIS_FAULTS: Readonly<Record<StoreFault, string>> = {
  refused: 'no server or Sentinel accepts the connection, or the host name is unknown',
  lost: 'the connection was lost',
  no_answer: 'Redis did not answer in time',
  tls: 'TLS failed: an invalid certificate, or plain text on one side',
  wrongpass: 'Redis refuses the login or a command of its user',
  login_source: 'REDIS_AUTH_FILE provides no login; weir uses the last login',
  readonly: 'Redis is a replica; weir looks for the master',
  loading:
    'Redis accepts no commands or no writes: it loads its data, runs a script, cannot save to disk, or lacks replicas',
  oom: 'maxmemory is reached',
  max_clients: 'Redis has reached its maximum number of connections',
  moved: 'Redis no longer serves the slots, or the Sentinels announced another master',
  not_redis: 'the server is not a Redis that weir supports: another program, a Sentinel or a sharding proxy',
  other: 'any other error; see the log',
};
/** The reasons for an answer without a decision, with their meanings. */
export const GIVEN_UP_REASONS = {
  request_bytes: 'the message was longer than MAX_REQUEST_BYTES',
  descriptors: 'the request had more descriptors than MAX_DESCRIPTORS',
  entries: 'the request had more entries than MAX_ENTRIES',
  limits: 'the request met more limits than MAX_LIMITS',
  regex_value: 'a value for a regular expression was longer than MAX_REGEX_VALUE_BYTES',
  match_work: 'matching needed more work than MAX_MATCH_WORK',
  hold_token: 'the request would have placed too many holds for one hold token',
  late: 'a large request waited too long for its turn',
  full:
    'too many large requests, or too many requests for Redis, were waiting, or the deadline had passed before ' +
    'weir could ask Redis',
} as const;
/** Results of operators' commands, with their meanings. */
export const ADMIN_RESULTS = {
  ok: 'done',
  refused: 'no permission, or an invalid request; nothing changed',
  failed:
    'the store or a worker was unavailable; the action may have succeeded if the answer contains `maybe_done`',
  dry_run: 'a dry run; nothing changed',
} as const;
export const WORKER_STATES = {
  starting: "the worker's port is not open yet",
  serving: 'the worker accepts requests',
  not_serving: 'the worker does not accept requests; /healthcheck shows the reason',
  silent: 'the worker does not answer; weir sends it no connections and will replace it',
} as const;
/** What waits on the gRPC port, with its meaning. */
export const GRPC_WAITING = {
  reads: 'connections with data that weir has not read yet',
  answers: 'calls that weir has not answered yet',
  deadlines: 'calls with a pending deadline',
  inflating: 'messages that are being decompressed or wait for decompression',
  lost: 'closed connections with calls that have not ended',
} as const;

/** The metrics, by name. */
export const FAMILIES = {
  weir_decisions_total: {
    type: 'counter',
    help: 'Decided descriptors, by domain, rule and code.',
    labels: {
      ...BY_RULE,
      code: {
        meaning: "The descriptor's code.",
        values: { OK: 'the limit allowed the request', OVER_LIMIT: 'the limit denied the request' },
      },
    },
  },
  weir_would_be_throttled_total: {
    type: 'counter',
    help:
      'Descriptors that exceeded their limit but were allowed because of monitoring, a grace period, ' +
      'shadow mode, quota mode or enforce_percent.',
    labels: BY_RULE,
  },
  weir_debt_forgiven_total: {
    type: 'counter',
    help: 'Hits that weir forgave because the debt would have exceeded max_debt, by domain and rule.',
    labels: BY_RULE,
  },
  weir_soft_limit_exceeded_total: {
    type: 'counter',
    help:
      'Descriptors over a soft limit whose request passed, by domain, rule and whether the request was ' +
      'marked.',
    labels: {
      ...BY_RULE,
      marked: {
        meaning: 'Whether the request got the headers and the metadata of `on_over`.',
        values: {
          false: 'the request was not marked: monitoring, a grace period, shadow mode or enforce_percent',
          true: 'the request was marked',
        },
      },
    },
  },
  weir_spilled_total: {
    type: 'counter',
    help: 'Allowed descriptors that did not fit into a limit with "then", by domain and rule.',
    labels: BY_RULE,
  },
  weir_unmatched_total: {
    type: 'counter',
    help: 'Descriptors that matched no rule, by domain and entry keys.',
    labels: {
      domain: DOMAIN,
      keys: {
        meaning:
          "The entries' keys, without their values, separated by commas; `other` for long lists and after " +
          'METRICS_MAX_SERIES is reached.',
      },
    },
  },
  weir_unknown_domain_total: {
    type: 'counter',
    help: 'Requests with an unknown domain, by domain.',
    labels: {
      domain: {
        meaning: "The request's domain; `other` for long names and after METRICS_MAX_SERIES is reached.",
      },
    },
  },
  weir_metrics_series_refused_total: {
    type: 'counter',
    help: 'Events counted as `other` because METRICS_MAX_SERIES was reached.',
  },
  weir_requests_given_up_total: {
    type: 'counter',
    help:
      'Requests answered without a decision, by domain and reason. They get OVER_LIMIT if a rule of the domain can ' +
      'deny, and OK otherwise.',
    labels: { domain: KNOWN_DOMAIN, reason: { meaning: 'The reason.', values: GIVEN_UP_REASONS } },
  },
  weir_refused_total: {
    type: 'counter',
    help: 'Calls over gRPC and `/json` without a decision, by gRPC status code.',
    labels: {
      code: {
        meaning: 'The gRPC status, also for `/json`.',
        values: {
          INVALID_ARGUMENT: 'invalid request; HTTP 400 for `/json`',
          UNAVAILABLE: 'no policy, no store, no time left, or canceled by the caller; HTTP 503 for `/json`',
          PERMISSION_DENIED: 'a page from another site made the call; HTTP 403 or 421 for `/json`',
        },
      },
    },
  },
  weir_broken_invariants_total: {
    type: 'counter',
    help:
      'Internal errors that should be impossible. Each of these errors is a bug in weir. Please report the log ' +
      'line.',
  },
  weir_request_duration_seconds: {
    type: 'histogram',
    help: 'Time from receiving a complete request over gRPC or `/json` to sending the answer, including errors.',
  },

  weir_holds_placed_total: {
    type: 'counter',
    help: 'Holds that requests placed, by domain and rule.',
    labels: BY_RULE,
  },
  weir_holds_settled_total: {
    type: 'counter',
    help: 'Settled holds, by domain, rule and whether the use is known.',
    labels: {
      ...BY_RULE,
      use: {
        meaning: 'Whether the end of the request reported its use.',
        values: {
          known: 'the use is known, as always for concurrency limits',
          unknown: 'no use was reported, so `unknown` of the rule decided',
        },
      },
    },
  },
  weir_holds_released_total: {
    type: 'counter',
    help:
      'Holds that weir gave back because the call was canceled or got no answer, or because an operator ' +
      'released them, by domain and rule.',
    labels: BY_RULE,
  },
  weir_hold_settlements_lost_total: {
    type: 'counter',
    help:
      'Settlements that weir gave up because the store was unavailable, by domain and rule. Their holds expire. Ends ' +
      'with a token that weir cannot verify count in weir_hold_tokens_unmatched_total.',
    labels: BY_RULE,
  },
  weir_hold_hits_total: {
    type: 'counter',
    help: 'Hits of the holds that were placed, settled or released, by domain, rule and event.',
    labels: {
      ...BY_RULE,
      event: {
        meaning: 'The event.',
        values: {
          placed: 'requests placed the holds',
          settled: 'the holds were settled',
          released: 'weir or an operator gave the holds back',
        },
      },
    },
  },
  weir_hold_used_hits_total: {
    type: 'counter',
    help: 'Hits that settlements reported as used, by domain and rule.',
    labels: BY_RULE,
  },
  weir_hold_overshoot_hits: {
    type: 'histogram',
    help: 'Hits that a request used above its hold, by domain and rule. Other settlements are not observed.',
    labels: BY_RULE,
  },
  weir_hold_tokens_unmatched_total: {
    type: 'counter',
    help:
      'Ends of requests that settled no hold, by domain and reason. A hold token counts once for each of its ' +
      'holds.',
    labels: {
      domain: KNOWN_DOMAIN,
      kind: {
        meaning: 'The reason.',
        values: {
          unknown:
            'the hold was settled before, has expired, or never existed; also an end with `pair: oldest` without a ' +
            'hold, and an end that the store had executed before without an answer',
          malformed:
            'the entry is not a hold token of weir, or weir was too busy to decode all of a long token',
          unverified:
            'the store was unavailable, so weir gave up the end, and none of the processes that share its key made ' +
            'the token, as for an invented token or one of the first edition',
        },
      },
    },
  },

  weir_memory_buckets: { type: 'gauge', help: 'Buckets in memory that are not full.' },
  weir_memory_bucket_bytes: { type: 'gauge', help: 'Estimated memory use of buckets, in bytes.' },
  weir_memory_evictions_total: {
    type: 'counter',
    help:
      'Buckets evicted before they were full, because of MEMORY_MAX_BUCKETS or MEMORY_MAX_BYTES. Each ' +
      'eviction may allow as many extra hits as a full bucket holds.',
  },
  weir_memory_holds: { type: 'gauge', help: 'Reservations and slots of concurrency limits in memory.' },
  weir_memory_holds_refused_total: {
    type: 'counter',
    help: 'Holds that did not fit into their share of MEMORY_MAX_BYTES. Their requests count as over the limit.',
  },
  weir_deny_cache_answers_total: {
    type: 'counter',
    help: 'Requests that the deny cache denied without asking Redis.',
  },
  weir_deny_cache_entries: {
    type: 'gauge',
    help: 'Entries of the deny cache, at most DENY_CACHE_MAX_ENTRIES.',
  },
  weir_lease_trips_saved_total: {
    type: 'counter',
    help: 'Requests that were decided with leased tokens, without a call to Redis. See `lease`.',
  },
  weir_lease_tokens_lapsed_total: {
    type: 'counter',
    help: 'Leased tokens that were not spent before their lease ended. They are not given back.',
  },
  weir_lease_early_denials_total: {
    type: 'counter',
    help:
      'Denials without a call to Redis because a lease was not granted in full shortly before. Other processes may ' +
      'have had tokens.',
  },
  weir_bucket_used_ratio: {
    type: 'gauge',
    aggregator: 'max',
    help:
      'Fraction of the limit used at the last request, for the BUCKET_USED_RATIO_TOP buckets with the ' +
      'most requests in the last minute. From 0 to 1, or above 1 if denied hits are counted.',
    labels: {
      domain: KNOWN_DOMAIN,
      rule: {
        meaning: 'The path of the rule, as `weir explain` shows it; `override` for a limit in the request.',
      },
      bucket: {
        meaning:
          'The entries of the bucket, as `key=value`; secrets are redacted, and long values are shortened.',
      },
    },
  },

  weir_store_up: {
    type: 'gauge',
    aggregator: 'min',
    help: '1 if the store is available, 0 while Redis is unavailable.',
  },
  weir_store_duration_seconds: { type: 'histogram', help: 'Duration of a call to Redis.' },
  weir_store_errors_total: {
    type: 'counter',
    help: 'Requests that the store could not decide, by reason.',
    labels: { reason: { meaning: 'The reason.', values: STORE_FAILURES } },
  },
  weir_store_failure_answers_total: {
    type: 'counter',
    help: 'Descriptors answered by on_store_failure, by its value.',
    labels: { policy: { meaning: 'The value of `on_store_failure`.', values: FAILURE_POLICIES } },
  },
  weir_redis_faults_total: {
    type: 'counter',
    help: 'Error replies from Redis, and failed or lost connections, by reason.',
    labels: { redis: REDIS_ROLE, reason: { meaning: 'The reason.', values: REDIS_FAULTS } },
  },
  weir_redis_give_backs_total: {
    type: 'counter',
    help:
      'Attempts to return tokens to a Redis server or slot after another Redis server or slot denied ' +
      'the request or failed, by result.',
    labels: {
      result: {
        meaning: 'The result.',
        values: {
          made: 'returned',
          failed:
            'Redis returned an error or did not answer, so the tokens may or may not have been returned',
          skipped: 'not sent, because the connection was lost',
        },
      },
    },
  },
  weir_redis_node_up: {
    type: 'gauge',
    aggregator: 'min',
    help: '1 if this Redis server or Redis Cluster master can decide requests, otherwise 0.',
    labels: { redis: REDIS_ROLE, node: { meaning: "The server's address." } },
  },

  weir_config_reloads_total: {
    type: 'counter',
    help: 'Policy reloads, by result.',
    labels: {
      result: {
        meaning: 'The result of the reload.',
        values: {
          success: 'all policies were loaded',
          error: 'a policy is invalid, and its previous version stays in effect',
        },
      },
    },
  },
  weir_config_last_reload_successful: {
    type: 'gauge',
    aggregator: 'min',
    help:
      '1 if the current policies are in effect, 0 if a policy is invalid and its previous version is in ' +
      'effect.',
  },
  weir_domain_state: {
    type: 'gauge',
    help:
      '1 for the current state of a domain: ok (in sync), kept (invalid, previous version in effect), ' +
      'absent (invalid, not in effect).',
    labels: {
      domain: KNOWN_DOMAIN,
      state: {
        meaning: "The domain's state.",
        values: {
          ok: 'in sync with the files',
          kept: 'invalid; the previous version is in effect',
          absent: 'invalid; no version is in effect',
        },
      },
    },
  },
  weir_info: {
    type: 'gauge',
    aggregator: 'first',
    help: 'Versions of weir and its policies. The value is always 1.',
    labels: {
      version: { meaning: "weir's version." },
      policy: { meaning: 'A short hash of the policies in effect, or `none`.' },
    },
  },
  weir_plan_rows: {
    type: 'gauge',
    help: 'Rows of the table of plans that is in effect.',
    labels: { domain: KNOWN_DOMAIN },
  },
  weir_plan_refused_rows: {
    type: 'gauge',
    help: 'Invalid rows of the table of plans. Their customers keep their previous values.',
    labels: { domain: KNOWN_DOMAIN },
  },
  weir_plan_source_age_seconds: {
    type: 'gauge',
    help: 'Time since rows in Redis were last known to be current, or that weir has been waiting for a valid table.',
    labels: { source: PLAN_SOURCE },
  },
  weir_plan_source_failures_total: {
    type: 'counter',
    help: 'Failed attempts to read rows from Redis.',
    labels: {
      source: PLAN_SOURCE,
      reason: {
        meaning: 'The reason.',
        values: {
          connection: 'no connection, or an invalid response',
          login: 'the password in PLANS_TOKEN_PATH cannot be read, or Redis refuses the login',
          content: 'the key does not exist, or is not a hash',
          transfer: 'the response ended too early, or the table changed while weir read it',
          timeout: 'the response was not complete after 60 seconds',
          too_large: 'the table has more than 128 MiB or 2,000,000 rows',
        },
      },
    },
  },

  weir_serving: {
    type: 'gauge',
    help: '1 if this server accepts requests, 0 if not. /healthcheck shows the reason.',
  },
  weir_workers: { type: 'gauge', help: 'Running workers.' },
  weir_worker_states: {
    type: 'gauge',
    help: 'Running workers, by state.',
    labels: { state: { meaning: "The worker's state.", values: WORKER_STATES } },
  },
  weir_workers_with_other_policies: {
    type: 'gauge',
    help: 'Workers whose policies differ from those of the primary.',
  },
  weir_worker_restarts_total: { type: 'counter', help: 'Workers that crashed and were replaced.' },
  weir_silent_workers_killed_total: {
    type: 'counter',
    help: 'Workers that stopped answering, and were killed and replaced.',
  },
  weir_large_requests_waiting: { type: 'gauge', help: 'Large requests that wait for their turn.' },
  weir_large_requests_waiting_bytes: {
    type: 'gauge',
    help: 'Memory used by large requests that wait for their turn, in bytes.',
  },
  weir_store_waiting_bytes: {
    type: 'gauge',
    help: 'Memory used by requests that wait for Redis, in bytes.',
  },
  weir_grpc_connections: { type: 'gauge', help: 'Open gRPC connections.' },
  weir_grpc_buffered_bytes: {
    type: 'gauge',
    help: 'Memory used by gRPC connections, in bytes, at most GRPC_MAX_BUFFERED_BYTES.',
  },
  weir_grpc_waiting: {
    type: 'gauge',
    help: 'Connections, calls or messages that wait on the gRPC port, by reason.',
    labels: { for: { meaning: 'The reason for waiting.', values: GRPC_WAITING } },
  },
  weir_admin_total: {
    type: 'counter',
    help: 'Bucket commands on the debug port, by action and result.',
    labels: {
      action: {
        meaning: 'The action; `access` for calls without permission, `unknown` for invalid requests.',
      },
      result: { meaning: 'The result.', values: ADMIN_RESULTS },
    },
  },
  weir_log_lines_dropped_total: {
    type: 'counter',
    help: 'Log lines dropped because the log output was too slow or failed.',
  },
  weir_stats_dropped_total: {
    type: 'counter',
    help: 'Metrics that could not be sent, by sink.',
    labels: {
      sink: {
        meaning: 'The setting that enables the sink.',
        values: { statsd: 'USE_STATSD', dogstatsd: 'USE_DOG_STATSD' },
      },
    },
  },
  weir_decision_log_lines_dropped_total: {
    type: 'counter',
    help:
      'Lost decision log lines (DECISION_LOG_SAMPLE). If DECISION_LOG_FILE is unset, some lost lines ' +
      'are counted in `weir_log_lines_dropped_total` instead.',
  },
  weir_trace_spans_dropped_total: {
    type: 'counter',
    help: 'Lost trace spans (TRACING_ENABLED), by reason.',
    labels: {
      reason: {
        meaning: 'The reason.',
        values: {
          queue: 'too many spans waited for the collector',
          export: 'the collector did not accept the spans in time',
        },
      },
    },
  },
} as const satisfies Readonly<Record<string, FamilyDescription>>;

export type FamilyName = keyof typeof FAMILIES;

export type LabelOf<Name extends FamilyName> = (typeof FAMILIES)[Name] extends {
  readonly labels: infer Labels;
}
  ? keyof Labels & string
  : never;
