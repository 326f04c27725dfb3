import type { RedisRole } from '../limiter/store-fault.js';

/** What a label of a metric says, for people. */
export interface LabelMeaning {
  readonly meaning: string;
  /** What each value stands for, where all of them are known beforehand. */
  readonly values?: Readonly<Record<string, string>>;
}

/** The labels of a metric in their order. */
export type LabelMeanings<Label extends string = string> = Readonly<Record<Label, LabelMeaning>>;

/** A metric as the manual shows it. */
export interface MetricDescription {
  readonly name: string;
  /** `counter`, `gauge` or `histogram`. */
  readonly type: string;
  readonly help: string;
  readonly labels: LabelMeanings;
}

const REDIS_ROLES: Readonly<Record<RedisRole, string>> = {
  main: 'that of REDIS_URL',
  per_second: 'that of REDIS_PERSECOND_URL',
};
export const REDIS_ROLE: LabelMeaning = { meaning: 'Which Redis.', values: REDIS_ROLES };
export const DOMAIN: LabelMeaning = {
  meaning: 'The domain of the policy, or `other` once METRICS_MAX_SERIES is reached.',
};
/** Of metrics that have few series. */
export const KNOWN_DOMAIN: LabelMeaning = { meaning: 'The domain of the policy.' };
export const RULE: LabelMeaning = {
  meaning:
    'The place of the rule in the tree of descriptors, as `weir explain` shows it; `override` for a limit that ' +
    'the caller sent; `block` or `allow` where an operator decided; `other` once METRICS_MAX_SERIES is reached.',
};
/** Of a request, whatever it is; callers choose it. */
export const ASKED_DOMAIN: LabelMeaning = {
  meaning: 'The domain of the request; `other` for long ones, and once METRICS_MAX_SERIES is reached.',
};
export const KEYS: LabelMeaning = {
  meaning:
    'The keys of the entries, joined by commas, without values; `other` for long ones, and once ' +
    'METRICS_MAX_SERIES is reached.',
};
export const DOMAIN_STATE: LabelMeaning = {
  meaning: 'How the domain stands.',
  values: {
    ok: 'it is in force as the files say',
    kept: 'it is bad now, and its last good version is in force',
    absent: 'it is bad, and nothing of it is in force',
  },
};
export const WORKER_STATES = {
  starting: 'its port is not open yet',
  serving: 'it answers, and should get requests',
  not_serving: 'it answers, and should get no requests: /healthcheck says why',
  silent: 'it does not answer, gets no new connections, and will be replaced',
} as const;
export const WORKER_STATE: LabelMeaning = {
  meaning: 'How the worker process stands.',
  values: WORKER_STATES,
};
export const CONTROL_KIND: LabelMeaning = {
  meaning: 'What an operator decided.',
  values: { block: 'to deny the descriptor', allow: 'to let it pass, without taking anything' },
};
export const SINK: LabelMeaning = {
  meaning: 'Where they were to go.',
  values: { statsd: 'USE_STATSD', dogstatsd: 'USE_DOG_STATSD' },
};
export const CODES = {
  OK: 'its limit did not deny the request',
  OVER_LIMIT: 'the request was denied, and this descriptor is over its limit',
} as const;
