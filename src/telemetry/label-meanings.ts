import type { RedisRole } from '../limiter/store-fault.js';

/** Meaning of a label for the manual. */
export interface LabelMeaning {
  readonly meaning: string;
  /** Meaning of each value, if all values are known. */
  readonly values?: Readonly<Record<string, string>>;
}

/** Labels of a metric, in their order. */
export type LabelMeanings<Label extends string = string> = Readonly<Record<Label, LabelMeaning>>;

/** Description of a metric for the manual. */
export interface MetricDescription {
  readonly name: string;
  /** `counter`, `gauge` or `histogram`. */
  readonly type: string;
  readonly help: string;
  readonly labels: LabelMeanings;
}

const REDIS_ROLES: Readonly<Record<RedisRole, string>> = {
  main: 'REDIS_URL',
  per_second: 'REDIS_PERSECOND_URL',
};
export const REDIS_ROLE: LabelMeaning = {
  meaning: 'The setting with the address of this Redis.',
  values: REDIS_ROLES,
};
export const DOMAIN: LabelMeaning = {
  meaning: "The policy's domain; `other` after METRICS_MAX_SERIES is reached.",
};
/** For metrics with few series. */
export const KNOWN_DOMAIN: LabelMeaning = { meaning: "The policy's domain." };
export const RULE: LabelMeaning = {
  meaning:
    "The rule's path, as `weir explain` shows it. `override`: a limit in the request. `other`: METRICS_MAX_SERIES " +
    'is reached.',
};
/** For any domain in a request, which callers choose. */
export const REQUESTED_DOMAIN: LabelMeaning = {
  meaning: "The request's domain; `other` for long names and after METRICS_MAX_SERIES is reached.",
};
export const KEYS: LabelMeaning = {
  meaning:
    "The entries' keys, without their values, separated by commas; `other` for long lists and after " +
    'METRICS_MAX_SERIES is reached.',
};
export const DOMAIN_STATE: LabelMeaning = {
  meaning: "The domain's state.",
  values: {
    ok: 'in sync with the files',
    kept: 'invalid; the previous version is in effect',
    absent: 'invalid; no version is in effect',
  },
};
export const PLAN_SOURCE: LabelMeaning = {
  meaning: 'The address in `plans.from`, without its query, or a file that has never been valid.',
};
export const SOURCE_FAULT: LabelMeaning = {
  meaning: 'The reason.',
  values: {
    connection: 'no connection, or an invalid response',
    login: 'the password in PLANS_TOKEN_PATH cannot be read, or Redis refuses the login',
    content: 'the key does not exist, or is not a hash',
    transfer: 'the response ended too early, or the table changed while weir read it',
    timeout: 'the response was not complete after 60 seconds',
    too_large: 'the table has more than 128 MiB or 2,000,000 rows',
  },
};
export const WORKER_STATES = {
  starting: "the worker's port is not open yet",
  serving: 'the worker accepts requests',
  not_serving: 'the worker does not accept requests; /healthcheck shows the reason',
  silent: 'the worker does not answer; weir sends it no connections and will replace it',
} as const;
export const WORKER_STATE: LabelMeaning = {
  meaning: "The worker's state.",
  values: WORKER_STATES,
};
export const SINK: LabelMeaning = {
  meaning: 'The setting that enables the sink.',
  values: { statsd: 'USE_STATSD', dogstatsd: 'USE_DOG_STATSD' },
};
export const CODES = {
  OK: 'the limit allowed the request',
  OVER_LIMIT: 'the limit denied the request',
} as const;
