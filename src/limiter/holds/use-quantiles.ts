import { MAX_UINT32 } from '../rate.js';

/** Steps for each doubling of a use, and the number of all steps up to 2^32-1. */
const STEPS_PER_DOUBLING = 8;
const STEPS = 32 * STEPS_PER_DOUBLING;

/** Number of the latest uses of a bucket that are remembered. Arrays of this size need no memory outside the heap. */
const MAX_USES = 64;
/** Weight of a bucket, which its uses share equally. Sums for thousands of buckets fit into 32 bits. */
const BUCKET_WEIGHT = 1 << 16;

/** Returns the step of a use. Steps round up, so that a quantile is never below its use. */
function stepOf(used: number): number {
  return used <= 1 ? 0 : Math.min(STEPS - 1, Math.ceil(STEPS_PER_DOUBLING * Math.log2(used)));
}

/** Returns the largest use of a step. */
function largestUse(step: number): number {
  return step === STEPS - 1 ? MAX_UINT32 : Math.floor(2 ** (step / STEPS_PER_DOUBLING));
}

/** Uses in logarithmic steps, 9 % apart, with a weight for each step. */
export class WeightedUses {
  readonly #weights = new Uint32Array(STEPS);
  #total = 0;

  /** Adds, or with a negative weight removes, a use. */
  add(step: number, weight: number): void {
    this.#weights[step] = (this.#weights[step] as number) + weight;
    this.#total += weight;
  }

  clear(): void {
    this.#weights.fill(0);
    this.#total = 0;
  }

  /** Returns the smallest use that at least this share of all weights does not exceed. */
  quantile(share: number): number {
    const enough = share * this.#total;
    let sum = 0;
    let step = -1;
    while (step < STEPS - 1 && (sum === 0 || sum < enough)) sum += this.#weights[++step] as number;
    return largestUse(step);
  }
}

/** For quantiles of single buckets. */
const scratch = new WeightedUses();

/** The latest uses of one bucket. */
export class BucketUses {
  readonly #steps = new Uint8Array(MAX_USES);
  #next = 0;
  #count = 0;
  #quantile = 0;

  /** Number of remembered uses. */
  get count(): number {
    return this.#count;
  }

  /** Remembers a use, and forgets the oldest one if there are too many. `all` are the uses of all buckets. */
  add(used: number, all: WeightedUses): void {
    const step = stepOf(used);
    if (this.#count === MAX_USES) {
      all.add(this.#steps[this.#next] as number, -weightOf(MAX_USES));
      all.add(step, weightOf(MAX_USES));
      this.#steps[this.#next] = step;
    } else {
      this.addTo(all, -1);
      this.#steps[this.#next] = step;
      this.#count++;
      this.addTo(all, 1);
    }
    this.#next = (this.#next + 1) % MAX_USES;
    this.#quantile = 0;
  }

  /** Returns the quantile of the uses; `share` is the same until {@link forgetQuantile}. */
  quantile(share: number): number {
    if (this.#quantile > 0) return this.#quantile;
    scratch.clear();
    for (let i = 0; i < this.#count; i++) scratch.add(this.#steps[i] as number, 1);
    this.#quantile = scratch.quantile(share);
    return this.#quantile;
  }

  forgetQuantile(): void {
    this.#quantile = 0;
  }

  /** Adds the uses to the uses of all buckets, or with -1 removes them. */
  addTo(all: WeightedUses, sign: 1 | -1): void {
    const weight = sign * weightOf(this.#count);
    for (let i = 0; i < this.#count; i++) all.add(this.#steps[i] as number, weight);
  }
}

/** Returns the weight of each use of a bucket with `count` uses. All buckets have about the same weight together. */
function weightOf(count: number): number {
  return count === 0 ? 0 : Math.floor(BUCKET_WEIGHT / count);
}

/** A bucket, and how often it stays although the place is needed for another one. */
interface KnownBucket {
  readonly uses: BucketUses;
  chances: number;
}

/** Maximum of {@link KnownBucket.chances}. */
const MAX_CHANCES = 3;
/** Minimum number of uses of a bucket, and of buckets of a rule, for a quantile. */
const ENOUGH = 20;

/** Settings of learned estimates, in hits; see `LearnedSpec`. */
interface Estimates {
  readonly quantile: number;
  readonly start: number;
  readonly max: number;
}

/**
 * The latest uses of the buckets of one rule. A bucket with enough uses has its own estimate. Other buckets have the
 * estimate of the rule, in which all buckets have the same weight, or `start` if the rule has too few buckets.
 */
export class RuleUses {
  readonly #buckets = new Map<string, KnownBucket>();
  readonly #all = new WeightedUses();
  #settings: Estimates;
  #maxBuckets: number;
  #quantile = 0;

  constructor(settings: Estimates, maxBuckets: number) {
    this.#settings = settings;
    this.#maxBuckets = maxBuckets;
  }

  /** Number of buckets with remembered uses. */
  get bucketCount(): number {
    return this.#buckets.size;
  }

  /** Returns the estimate for a bucket. */
  estimate(key: string): number {
    const { quantile, start } = this.#settings;
    // With this number of buckets, one bucket has at most half of the weight above the quantile.
    const enough = Math.max(ENOUGH, Math.round(2 / (1 - quantile)));
    const uses = this.#buckets.get(key)?.uses;
    if (uses !== undefined && uses.count >= Math.min(enough, MAX_USES)) {
      return this.#bounded(uses.quantile(quantile));
    }
    return this.#buckets.size < enough ? start : this.estimateOfAll();
  }

  /** Returns the quantile of all buckets, or `start` if no use is known. */
  estimateOfAll(): number {
    const { quantile, start } = this.#settings;
    if (this.#buckets.size === 0) return start;
    if (this.#quantile === 0) this.#quantile = this.#all.quantile(quantile);
    return this.#bounded(this.#quantile);
  }

  #bounded(hits: number): number {
    return Math.min(hits, this.#settings.max);
  }

  /** Remembers a use of a bucket. */
  learn(key: string, used: number): void {
    const known = this.#buckets.get(key);
    const uses = known?.uses ?? this.#newBucket(key);
    if (uses === undefined) return;
    if (known !== undefined) known.chances = Math.min(MAX_CHANCES, known.chances + 1);
    uses.add(used, this.#all);
    this.#quantile = 0;
  }

  /**
   * Adds a bucket, and returns its uses. Returns undefined if the rule has too many buckets, and the oldest one has a
   * chance left. Many buckets that are used once thus do not displace buckets that are used often.
   */
  #newBucket(key: string): BucketUses | undefined {
    if (this.#buckets.size >= this.#maxBuckets && !this.#dropOldest()) return undefined;
    const uses = new BucketUses();
    this.#buckets.set(key, { uses, chances: 0 });
    return uses;
  }

  /** Removes the oldest bucket. If it has a chance left, it becomes the newest one instead. */
  #dropOldest(): boolean {
    for (const [key, bucket] of this.#buckets) {
      this.#buckets.delete(key);
      if (bucket.chances > 0) {
        bucket.chances--;
        this.#buckets.set(key, bucket);
        return false;
      }
      bucket.uses.addTo(this.#all, -1);
      this.#quantile = 0;
      return true;
    }
    return false;
  }

  /** Applies new settings, and removes buckets above the new maximum number. */
  change(settings: Estimates, maxBuckets: number): void {
    this.#settings = settings;
    this.#maxBuckets = maxBuckets;
    this.#quantile = 0;
    for (const { uses } of this.#buckets.values()) uses.forgetQuantile();
    while (this.#buckets.size > maxBuckets) this.#dropOldest();
  }
}
