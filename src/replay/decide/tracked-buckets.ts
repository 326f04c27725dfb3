import { isBlocked } from '../../policy/plans/planned-rules.js';
import { TrackedBucket } from './tracked-bucket.js';
import type { LimitingRule, MetLimit } from './verdict.js';

/** Maximum number of buckets that are tracked. Verdicts of others count as certain. */
export const MAX_TRACKED = 2_000_000;

/** Separates the domain and the label of a rule in a key. */
const SEPARATOR = '\0';

/** The buckets of a policy that a replay tracks, by name. */
export class TrackedBuckets {
  readonly #byKey = new Map<string, TrackedBucket>();
  readonly #rules = new Map<string, LimitingRule>();
  /** Whether a limit had numbers from the plans of customers. */
  hasPlans = false;
  /** Whether there were more buckets than can be tracked. */
  isFull = false;

  /** Returns the bucket of a limit, or undefined if it is not tracked. */
  of(limit: MetLimit): TrackedBucket | undefined {
    const { key } = limit.take;
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    if (this.#byKey.size >= MAX_TRACKED) {
      this.isFull = true;
      return undefined;
    }
    const bucket = new TrackedBucket(this.ruleOf(limit), limit.take.rate);
    this.#byKey.set(key, bucket);
    return bucket;
  }

  /** Returns the bucket of a limit if a request has met it. */
  known({ take: { key } }: MetLimit): TrackedBucket | undefined {
    return this.#byKey.get(key);
  }

  /** Returns the rule of a limit. The rule of its bucket is the same, and faster to find. */
  ruleOf({ domain, take }: MetLimit): LimitingRule {
    const { label, rate } = take;
    const key = domain + SEPARATOR + label;
    let rule = this.#rules.get(key);
    if (rule === undefined) {
      const plan = take.rule?.plan;
      rule = { domain, label, rate, plan };
      if (plan !== undefined) this.hasPlans = true;
      this.#rules.set(key, rule);
    } else if (isBlocked(rule)) rule.rate = rate;
    return rule;
  }

  all(): Iterable<TrackedBucket> {
    return this.#byKey.values();
  }
}
