import type { Entry } from '../../limiter/entry.js';

/**
 * Values of so many UTF-16 units enter the name of a bucket as they are, whatever they hold, and for next to nothing.
 */
const SHORT_VALUE = 42;
/** Steps (MatchWork) that the digest of a longer one takes, and each of its units. */
const DIGEST_STEPS = 400;
const UNIT_STEPS = 0.5;

/** Steps that it takes to name a bucket after the value of an entry, as it is or as its digest (bucket-key.ts). */
export function namingSteps({ value }: Entry): number {
  return value.length <= SHORT_VALUE ? 0 : DIGEST_STEPS + value.length * UNIT_STEPS;
}
