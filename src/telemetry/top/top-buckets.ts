import type { Entry } from '../../limiter/entry.js';
import { HitSampler } from './hit-sampler.js';
import { type Estimate, estimatesOf, SlidingHeavyHitters, type SpanCounts } from './sliding-heavy-hitters.js';

/** Measure of a bucket: requests that it denied, or hits that it allowed. */
export type TopMeasure = 'denied' | 'used';
const MEASURES: readonly TopMeasure[] = ['denied', 'used'];
export type TopSpan = 'minute' | 'hour';

const MICROS = 1_000_000;
/** Length of a slice in seconds. SLICES of them cover the span and the current slice. */
const SLICE_SECONDS: Readonly<Record<TopSpan, number>> = { minute: 10, hour: 600 };

/** A bucket with its description. Its strings must not be slices of longer strings, which would stay in memory. */
export interface BucketDescription {
  readonly key: string;
  readonly domain: string;
  readonly rule: string;
  readonly entries: readonly Entry[];
  /** Limit of an override in requests, such as `100/minute`. */
  readonly limit?: string | undefined;
  /** Plan of the customer, if the limit has values of `plans`. */
  readonly plan?: string | undefined;
  /** Used fraction of the limit at the last request; undefined if unknown. */
  usedRatio: number | undefined;
}

/** A bucket with its estimated counts. They are too high by at most `…Error`. */
export interface TopRow {
  readonly key: string;
  /** Undefined if the key is unknown. */
  readonly about: BucketDescription | undefined;
  readonly denied: number;
  readonly deniedError: number;
  readonly used: number;
  readonly usedError: number;
}

/** Properties of all rows of a span. */
export interface TopSpanSummary {
  /** Maximum error of any estimate. */
  readonly error: Readonly<Record<TopMeasure, number>>;
  readonly coversMicros: number;
  /** Number of hits, or denials, per sample in the busiest slice; 1 if all were counted. */
  readonly sampled: number;
}

export interface TopBucketsOptions {
  /**
   * Number of buckets in each sketch. A sketch keeps each bucket whose share of the sketch's total exceeds 1 /
   * `capacity`.
   */
  readonly capacity: number;
  readonly nowMicros: () => number;
  /** A number from 0 to just below 1. */
  readonly random: () => number;
}

type Sketches = Readonly<Record<TopSpan, SlidingHeavyHitters<BucketDescription>>>;

/** Selects the buckets and the span of a query. */
export interface TopFilter {
  readonly of: TopSpan;
  readonly domain?: string | undefined;
  readonly rule?: string | undefined;
}

/**
 * The buckets with the most denials and the most allowed hits in the last minute and hour. Counts are sampled, so that
 * they cost next to nothing. Up to about a thousand decisions per second, all are counted.
 */
export class TopBuckets {
  /** Samplers of each measure. Only sampled hits must be counted. */
  readonly samplers: Readonly<Record<TopMeasure, HitSampler>>;
  readonly #options: TopBucketsOptions;
  readonly #sketches: Readonly<Record<TopMeasure, Sketches>>;
  #adaptedMicros: number;

  constructor(options: TopBucketsOptions) {
    this.#options = options;
    const { capacity, nowMicros, random } = options;
    this.#adaptedMicros = nowMicros();
    this.samplers = { denied: new HitSampler(random), used: new HitSampler(random) };
    const over = (span: TopSpan): SlidingHeavyHitters<BucketDescription> =>
      new SlidingHeavyHitters(capacity, SLICE_SECONDS[span] * MICROS, this.#adaptedMicros);
    this.#sketches = {
      denied: { minute: over('minute'), hour: over('hour') },
      used: { minute: over('minute'), hour: over('hour') },
    };
  }

  find(key: string): BucketDescription | undefined {
    const { denied, used } = this.#sketches;
    const known =
      used.minute.findCurrent(key) ??
      denied.minute.findCurrent(key) ??
      used.hour.findCurrent(key) ??
      denied.hour.findCurrent(key);
    return known?.about;
  }

  /** Counts hits that a sampler returned. `about` is the result of {@link find}, or new. */
  count(measure: TopMeasure, about: BucketDescription, hits: number): void {
    const { minute, hour } = this.#sketches[measure];
    const { hitsPerSample } = this.samplers[measure];
    minute.add(about.key, about, hits, hitsPerSample);
    hour.add(about.key, about, hits, hitsPerSample);
  }

  /** To be called about once a second. */
  tick(): void {
    const nowMicros = this.#options.nowMicros();
    const elapsedSeconds = (nowMicros - this.#adaptedMicros) / MICROS;
    this.#adaptedMicros = nowMicros;
    for (const measure of MEASURES) {
      this.samplers[measure].adapt(elapsedSeconds);
      for (const span of ['minute', 'hour'] as const) this.#sketches[measure][span].advance(nowMicros);
    }
  }

  /**
   * Returns up to `most` buckets with the highest estimates, in descending order. If fewer buckets have the measure,
   * the buckets of the other measure follow.
   */
  rank(by: TopMeasure, filter: TopFilter, most: number): readonly TopRow[] {
    const keys = new Set<string>();
    for (const measure of by === 'denied' ? MEASURES : MEASURES.toReversed()) {
      if (keys.size < most) this.#addHighest(keys, measure, filter, most);
    }
    return this.look(filter.of, [...keys]);
  }

  #addHighest(keys: Set<string>, by: TopMeasure, filter: TopFilter, most: number): void {
    const { of, domain, rule } = filter;
    const best = new TopK<readonly [key: string, Estimate<BucketDescription>]>(
      most - keys.size,
      (one, other) => {
        return other[1].count - one[1].count || (one[0] < other[0] ? -1 : 1);
      },
    );
    for (const one of estimatesOf(this.#read(by, of))) {
      const [key, { about }] = one;
      if (domain !== undefined && about.domain !== domain) continue;
      if ((rule === undefined || about.rule === rule) && !keys.has(key)) best.add(one);
    }
    for (const [key] of best.sorted) keys.add(key);
  }

  look(of: TopSpan, keys: readonly string[]): readonly TopRow[] {
    return keys.map((key) => {
      const denied = this.#sketches.denied[of].estimate(key);
      const used = this.#sketches.used[of].estimate(key);
      return {
        key,
        about: used.about ?? denied.about,
        denied: denied.count,
        deniedError: denied.error,
        used: used.count,
        usedError: used.error,
      };
    });
  }

  about(of: TopSpan): TopSpanSummary {
    const denied = this.#read('denied', of);
    const used = this.#read('used', of);
    return {
      error: { denied: denied.floor, used: used.floor },
      coversMicros: used.coversMicros,
      sampled: Math.max(denied.hitsPerSample, used.hitsPerSample),
    };
  }

  #read(measure: TopMeasure, of: TopSpan): SpanCounts<BucketDescription> {
    return this.#sketches[measure][of].read(this.#options.nowMicros());
  }
}

/** Keeps the first k items of an order. An item that is not among them costs one comparison. */
export class TopK<Item> {
  readonly #k: number;
  readonly #order: (one: Item, other: Item) => number;
  readonly #first: Item[] = [];

  /** @param order returns a negative number if `one` comes before `other` */
  constructor(k: number, order: (one: Item, other: Item) => number) {
    this.#k = k;
    this.#order = order;
  }

  add(item: Item): void {
    const first = this.#first;
    if (first.length >= this.#k) {
      if (this.#k === 0 || this.#order(item, first[this.#k - 1] as Item) >= 0) return;
      first.pop();
    }
    let low = 0;
    let high = first.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#order(item, first[middle] as Item) < 0) high = middle;
      else low = middle + 1;
    }
    first.splice(low, 0, item);
  }

  /** Returns the first k of the added items, in order. */
  get sorted(): readonly Item[] {
    return this.#first;
  }
}
