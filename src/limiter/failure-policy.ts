/** The words of `on_store_failure`; see docs/operate/redis.md, "When Redis is unavailable". */
export const STORE_FAILURE_POLICIES = ['error', 'allow', 'deny', 'local'] as const;
/** What is answered, whatever share of the limit `local` has. */
export type StoreFailureAnswer = (typeof STORE_FAILURE_POLICIES)[number];

/** Smallest share of a limit that is told from the next one. */
export const MIN_SHARE = 1e-6;

/**
 * `local` with less than the whole limit: the share that each replica holds, from {@link MIN_SHARE} to below 1. The
 * whole limit is the word alone.
 */
export interface LocalShare {
  readonly local: number;
}

/** What a rule answers while the store cannot be asked. */
export type StoreFailurePolicy = StoreFailureAnswer | LocalShare;

/** What a policy answers, without its share. */
export function answerOf(policy: StoreFailurePolicy): StoreFailureAnswer {
  return typeof policy === 'string' ? policy : 'local';
}

/** The share of the limit that a replica holds by a policy that answers `local`: above 0, at most 1. */
export function shareOf(policy: StoreFailurePolicy): number {
  return typeof policy === 'string' ? 1 : policy.local;
}

/** Whether two policies say the same. */
export function isSameFailurePolicy(one: StoreFailurePolicy, other: StoreFailurePolicy): boolean {
  return answerOf(one) === answerOf(other) && shareOf(one) === shareOf(other);
}

/** As a policy file says it: `deny`, `{ local: 0.25 }`. */
export function describeFailurePolicy(policy: StoreFailurePolicy): string {
  return typeof policy === 'string' ? policy : `{ local: ${policy.local} }`;
}
