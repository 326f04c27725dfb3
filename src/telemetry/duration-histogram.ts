import { type FamilyHead, StoredFamily, seriesText, type TakeSample } from './family-registry.js';

/**
 * A histogram without labels. An observation costs a short search and three additions, a hundredth of the cost of the
 * Prometheus client's.
 */
export class DurationHistogram extends StoredFamily {
  readonly #buckets: BucketCounts;

  /** @param bounds upper bounds of the buckets in seconds, ascending */
  constructor(head: FamilyHead, bounds: readonly number[]) {
    super(head);
    this.#buckets = new BucketCounts(bounds);
  }

  observe(seconds: number): void {
    this.#buckets.observe(seconds);
  }

  eachSample(take: TakeSample): void {
    this.#buckets.eachSample(this.name, {}, take);
  }
}

/** Data of a histogram: the number of values in each bucket, and their sum. */
export class BucketCounts {
  readonly #bounds: readonly number[];
  /** Number of values of each bucket, not cumulative. The last bucket has no upper bound. */
  readonly #counts: number[];
  #sum = 0;
  /** Whether no value was observed yet. */
  isEmpty = true;

  /** @param bounds upper bounds of the buckets, ascending */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    this.isEmpty = false;
    const bounds = this.#bounds;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] as number)) at++;
    this.#counts[at] = (this.#counts[at] as number) + 1;
    this.#sum += value;
  }

  eachSample(name: string, labels: Readonly<Record<string, string>>, take: TakeSample): void {
    let below = 0;
    const bucket = `${name}_bucket`;
    for (const [at, le] of this.#bounds.entries()) {
      below += this.#counts[at] as number;
      take(seriesText(bucket, { le, ...labels }), below);
    }
    const count = below + (this.#counts[this.#bounds.length] as number);
    take(seriesText(bucket, { le: '+Inf', ...labels }), count);
    take(seriesText(`${name}_sum`, labels), this.#sum);
    take(seriesText(`${name}_count`, labels), count);
  }
}
