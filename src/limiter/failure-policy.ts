/** The Redis that stores a bucket: `main` is REDIS_URL, `per_second` is REDIS_PERSECOND_URL. */
export type RedisRole = 'main' | 'per_second';

/** Faults of a remote store or of the connection to it. The name is the value of a metric label. */
export type StoreFault =
  | 'refused'
  | 'lost'
  | 'no_answer'
  | 'tls'
  | 'wrongpass'
  | 'login_source'
  | 'readonly'
  | 'loading'
  | 'oom'
  | 'max_clients'
  | 'moved'
  | 'not_redis'
  | 'other';

/** Values of `on_store_failure`; see docs/operate/redis-outages.md. */
export const STORE_FAILURE_POLICIES = ['error', 'allow', 'deny', 'local'] as const;
/** The failure policy without its share. */
export type StoreFailureAnswer = (typeof STORE_FAILURE_POLICIES)[number];

/** Smallest share of a limit. Smaller differences between shares are not distinguished. */
export const MIN_SHARE = 1e-6;

/**
 * `local` with a part of the limit: the share that each replica enforces, from {@link MIN_SHARE} to below 1. The word
 * `local` alone stands for the whole limit.
 */
export interface LocalShare {
  readonly local: number;
}

/** The answer of a rule while the store is unavailable. */
export type StoreFailurePolicy = StoreFailureAnswer | LocalShare;

/** Returns what a failure policy answers, without its share. */
export function answerOf(policy: StoreFailurePolicy): StoreFailureAnswer {
  return typeof policy === 'string' ? policy : 'local';
}

/** Returns the share of the limit that a replica enforces with the policy `local`: above 0, at most 1. */
export function shareOf(policy: StoreFailurePolicy): number {
  return typeof policy === 'string' ? 1 : policy.local;
}

/** Also compares the share of `local`. */
export function isSameFailurePolicy(one: StoreFailurePolicy, other: StoreFailurePolicy): boolean {
  return answerOf(one) === answerOf(other) && shareOf(one) === shareOf(other);
}

/** Formats a failure policy as in a policy file: `deny`, `{ local: 0.25 }`. */
export function describeFailurePolicy(policy: StoreFailurePolicy): string {
  return typeof policy === 'string' ? policy : `{ local: ${policy.local} }`;
}
