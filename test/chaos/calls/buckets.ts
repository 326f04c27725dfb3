import { entriesKey } from '../../../src/policy/names/bucket-key.js';
import { redisKey } from '../../../src/storage/redis/redis-key.js';

/** The domain of all calls. */
export const DOMAIN = 'chaos';

/** What `on_store_failure` says of a bucket. */
export const FAILURE_POLICIES = ['error', 'allow', 'deny', 'local'] as const;
export type FailurePolicy = (typeof FAILURE_POLICIES)[number];

/** A bucket of the policy that the servers have. */
export interface Bucket {
  readonly name: string;
  /** Its capacity, which no other bucket has: an answer that shows another one belongs to another call. */
  readonly maxTokens: number;
  /** Tokens per millisecond. */
  readonly perMs: number;
  readonly onFailure: FailurePolicy;
  /** So large that it never empties: a denial of it is wrong. */
  readonly isLarge: boolean;
}

const SMALL_TOKENS = 10;
const SMALL_PER_SECOND = 4;
const LARGE_TOKENS = 1_000_000;
const LARGE_PER_SECOND = 1000;

/**
 * Buckets number 0 and 1 are those that all callers share, a small and a large one; each caller has a small one and a
 * large one of its own.
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

/** The policy file that has them. */
export function policyOf(buckets: readonly Bucket[]): string {
  const rules = buckets.map(
    ({ name, maxTokens, perMs, onFailure }) => `  - key: bucket
    value: ${name}
    rate_limit:
      name: ${name}
      on_store_failure: ${onFailure}
      token_bucket: { max_tokens: ${maxTokens}, tokens_per_fill: ${perMs * 1000}, fill_interval: 1s }`,
  );
  return `domain: ${DOMAIN}\ndescriptors:\n${rules.join('\n')}\n`;
}

/** Where Redis keeps a bucket of that name. */
export function keyOfBucket(name: string): string {
  return redisKey(entriesKey(DOMAIN, [{ key: 'bucket', value: name }]));
}

/** Name of the bucket that a key in Redis is of; undefined for other keys. */
export function bucketOfKey(key: string): string | undefined {
  return /6:bucket\d+:(b\d+)$/.exec(key)?.[1];
}
