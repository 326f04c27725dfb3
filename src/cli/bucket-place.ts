import type { BucketPlace, ExplainedRule } from '../config/show/explain.js';
import { DEFAULT_KEY_PREFIX, redisKey, slotOfKey } from '../storage/redis/redis-key.js';

/**
 * Returns the Redis key and slot of a rule's bucket, for keys that begin with `prefix`. Returns undefined for an
 * unlimited rule.
 */
export function bucketPlaceOf(
  { rule, key, tagLength }: ExplainedRule,
  prefix = DEFAULT_KEY_PREFIX,
): BucketPlace | undefined {
  // An unlimited rule has no bucket.
  if (rule.rate === undefined) return undefined;
  const named = redisKey({ key, tagLength }, prefix);
  return { key: named, slot: slotOfKey(named) };
}
