import { entriesKey } from '../../../src/policy/names/bucket-key.js';
import { redisKey } from '../../../src/storage/redis/redis-key.js';

/** The domain of all calls. */
export const DOMAIN = 'chaos';

/** `on_store_failure` of a bucket. */
export const FAILURE_POLICIES = ['error', 'allow', 'deny', 'local'] as const;
export type FailurePolicy = (typeof FAILURE_POLICIES)[number];

/** A bucket of the servers' policy. */
export interface Bucket {
  readonly name: string;
  /** Capacity, which is different for each bucket: an answer with another capacity belongs to another call. */
  readonly maxTokens: number;
  /** Tokens per millisecond. */
  readonly perMs: number;
  readonly onFailure: FailurePolicy;
  /** Whether the bucket is so large that it never empties: a denial is wrong. */
  readonly isLarge: boolean;
}

const SMALL_TOKENS = 10;
const SMALL_PER_SECOND = 4;
const LARGE_TOKENS = 1_000_000;
const LARGE_PER_SECOND = 1000;

/**
 * Buckets 0 and 1, a small and a large one, are shared by all callers. Each caller also has its own small and large
 * bucket.
 */
export function makeBuckets(failurePolicies: readonly FailurePolicy[]): Bucket[] {
  return ['error' as const, 'error' as const, ...failurePolicies.flatMap((policy) => [policy, policy])].map(
    (onFailure, at) => {
      const isLarge = at % 2 === 1;
      return {
        name: `b${at}`,
        maxTokens: at + (isLarge ? LARGE_TOKENS : SMALL_TOKENS),
        perMs: (isLarge ? LARGE_PER_SECOND : SMALL_PER_SECOND) / 1000,
        onFailure,
        isLarge,
      };
    },
  );
}

/** Returns the policy file with these buckets, and further rules. */
export function policyOf(buckets: readonly Bucket[], furtherRules: string): string {
  const rules = buckets.map(
    ({ name, maxTokens, perMs, onFailure }) => `  - key: bucket
    value: ${name}
    rate_limit:
      name: ${name}
      on_store_failure: ${onFailure}
      token_bucket: { max_tokens: ${maxTokens}, tokens_per_fill: ${perMs * 1000}, fill_interval: 1s }`,
  );
  return `domain: ${DOMAIN}\ndescriptors:\n${rules.join('\n')}\n${furtherRules}`;
}

/** Returns the Redis key of a bucket. */
export function keyOfBucket(name: string): string {
  return redisKey(entriesKey(DOMAIN, [{ key: 'bucket', value: name }]));
}

/** Returns the bucket name of a Redis key; undefined for other keys. */
export function bucketOfKey(key: string): string | undefined {
  return /6:bucket\d+:(b\d+)$/.exec(key)?.[1];
}
