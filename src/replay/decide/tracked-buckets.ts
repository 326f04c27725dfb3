import { TrackedBucket } from './tracked-bucket.js';
import type { MetLimit } from './verdict.js';

/** Maximum number of buckets that are tracked. Verdicts of others count as certain. */
export const MAX_TRACKED = 2_000_000;

/** The buckets of a policy that a replay tracks, by name. */
export class TrackedBuckets {
  readonly #byKey = new Map<string, TrackedBucket>();
  /** Whether there were more buckets than can be tracked. */
  isFull = false;

  /** Returns the bucket of a limit, or undefined if it is not tracked. */
  of(limit: MetLimit): TrackedBucket | undefined {
    const known = this.#byKey.get(limit.key);
    if (known !== undefined) return known;
    if (this.#byKey.size >= MAX_TRACKED) {
      this.isFull = true;
      return undefined;
    }
    const bucket = new TrackedBucket(limit);
    this.#byKey.set(limit.key, bucket);
    return bucket;
  }

  all(): Iterable<TrackedBucket> {
    return this.#byKey.values();
  }
}
