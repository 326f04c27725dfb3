import { BucketCounts } from '../duration-histogram.js';
import { seriesText, type TakeSample } from '../family.js';
import type { ObserverOptions } from './mapping.js';

/** Durations of one series. */
export interface Observer {
  /** Whether no duration was observed yet. */
  readonly isEmpty: boolean;
  observe(value: number): void;
  eachSample(name: string, labels: Readonly<Record<string, string>>, take: TakeSample): void;
}

/** Maximum number of values in an age bucket. Further values are sampled uniformly. */
const MAX_SAMPLES = 1000;

/** Creates an observer. `quantiles`: whether a summary shows quantiles, which several processes could not add up. */
export function createObserver(options: ObserverOptions, quantiles: boolean, now: () => number): Observer {
  return options.kind === 'histogram'
    ? new BucketCounts(options.buckets)
    : new SummaryObserver(options, quantiles, now);
}

interface AgeBucket {
  samples: number[];
  count: number;
}

/** Summary with quantiles of a sample of the last `maxAgeMs`. The error bounds of a mapping file are ignored. */
class SummaryObserver implements Observer {
  readonly #options: Extract<ObserverOptions, { kind: 'summary' }>;
  readonly #showsQuantiles: boolean;
  readonly #now: () => number;
  readonly #buckets: AgeBucket[];
  #turn: number;
  #count = 0;
  #sum = 0;

  constructor(
    options: Extract<ObserverOptions, { kind: 'summary' }>,
    showsQuantiles: boolean,
    now: () => number,
  ) {
    this.#options = options;
    this.#showsQuantiles = showsQuantiles;
    this.#now = now;
    this.#buckets = Array.from({ length: options.ageBuckets }, () => ({ samples: [], count: 0 }));
    this.#turn = this.#turnNow();
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  observe(value: number): void {
    this.#count++;
    this.#sum += value;
    if (!this.#showsQuantiles) return;
    this.#clearExpired();
    const bucket = this.#buckets[this.#turn % this.#buckets.length] as AgeBucket;
    const at = bucket.count++;
    if (at < MAX_SAMPLES) bucket.samples.push(value);
    else {
      const slot = Math.floor(Math.random() * bucket.count);
      if (slot < MAX_SAMPLES) bucket.samples[slot] = value;
    }
  }

  eachSample(name: string, labels: Readonly<Record<string, string>>, take: TakeSample): void {
    if (this.#showsQuantiles) {
      this.#clearExpired();
      const weighted = this.#buckets.flatMap(({ samples, count }) =>
        samples.map((value) => ({ value, weight: count / samples.length })),
      );
      weighted.sort((one, other) => one.value - other.value);
      for (const quantile of this.#options.quantiles) {
        take(seriesText(name, { quantile, ...labels }), quantileOf(weighted, quantile));
      }
    }
    take(seriesText(`${name}_sum`, labels), this.#sum);
    take(seriesText(`${name}_count`, labels), this.#count);
  }

  #turnNow(): number {
    return Math.floor(this.#now() / (this.#options.maxAgeMs / this.#options.ageBuckets));
  }

  /** Clears the age buckets that have expired. */
  #clearExpired(): void {
    const turn = this.#turnNow();
    const passed = Math.min(turn - this.#turn, this.#buckets.length);
    for (let step = 1; step <= passed; step++) {
      this.#buckets[(turn - passed + step) % this.#buckets.length] = { samples: [], count: 0 };
    }
    if (turn > this.#turn) this.#turn = turn;
  }
}

/**
 * Returns the smallest value with at least this share of the weight at or below it, or NaN without values, like the
 * client libraries.
 */
function quantileOf(
  ascending: readonly { readonly value: number; readonly weight: number }[],
  quantile: number,
): number {
  const total = ascending.reduce((sum, { weight }) => sum + weight, 0);
  let below = 0;
  for (const { value, weight } of ascending) {
    below += weight;
    if (below >= quantile * total) return value;
  }
  return ascending.at(-1)?.value ?? Number.NaN;
}
