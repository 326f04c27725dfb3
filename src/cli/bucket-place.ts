import type { BucketPlace, ExplainedRule } from '../config/show/explain.js';
import { slotOfKey } from '../storage/redis/cluster/slot-keys.js';
import { DEFAULT_KEY_PREFIX, redisKey } from '../storage/redis/redis-key.js';

/** Where the bucket of a rule is in any Redis whose keys begin so; undefined where it has none. */
export function bucketPlaceOf(
  { rule, key, tagLength }: ExplainedRule,
  prefix = DEFAULT_KEY_PREFIX,
): BucketPlace | undefined {
  // Nothing is kept for an unlimited rule.
  if (rule.rate === undefined) return undefined;
  const named = redisKey({ key, tagLength }, prefix);
  return { key: named, slot: slotOfKey(named) };
}
