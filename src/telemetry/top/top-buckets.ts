import type { Entry } from '../../limiter/entry.js';
import { HitSampler } from './hit-sampler.js';
import { type Estimate, estimatesOf, HittersOverTime, type ReadSpan } from './hitters-over-time.js';
import { Most } from './most.js';

/** What is counted of a bucket: requests that were denied because of it, and hits that were let through. */
export type TopMeasure = 'denied' | 'used';
const MEASURES: readonly TopMeasure[] = ['denied', 'used'];
export type TopSpan = 'minute' | 'hour';

const MICROS = 1_000_000;
/** Length of a slice; SLICES of them cover the span and what of the newest has passed. */
export const SLICE_SECONDS: Readonly<Record<TopSpan, number>> = { minute: 10, hour: 600 };

/** A bucket, for people. No text of it may be a piece of a longer one, which would be kept with it. */
export interface BucketAbout {
  readonly key: string;
  readonly domain: string;
  readonly rule: string;
  readonly entries: readonly Entry[];
  /** Of a limit that requests bring themselves: the limit, such as `100/minute`. */
  readonly limit?: string | undefined;
  /** How much of the limit was used when it was last seen; undefined while nothing said so. */
  usedRatio: number | undefined;
}

/** A bucket with what was counted of it. Estimates: at most `…Error` above what is true. */
export interface TopRow {
  readonly key: string;
  /** Undefined where nothing is known of the key. */
  readonly about: BucketAbout | undefined;
  readonly denied: number;
  readonly deniedError: number;
  readonly used: number;
  readonly usedError: number;
}

/** What holds for all rows of a span. */
export interface TopSpanAbout {
  /** Most that any estimate is too high. */
  readonly error: Readonly<Record<TopMeasure, number>>;
  readonly coversMicros: number;
  /** One hit, or denial, in so many was counted where most was to be counted; 1: all. */
  readonly sampled: number;
}

export interface TopBucketsOptions {
  /** Of each sketch: buckets it surely keeps if more than one part in so many of all that it counts is theirs. */
  readonly capacity: number;
  readonly nowMicros: () => number;
  /** Gives numbers from 0 to just below 1. */
  readonly random: () => number;
}

type Sketches = Readonly<Record<TopSpan, HittersOverTime<BucketAbout>>>;

/** Which buckets are asked for, of which span. */
export interface TopFilter {
  readonly of: TopSpan;
  readonly domain?: string | undefined;
  readonly rule?: string | undefined;
}

/**
 * The buckets that most is denied of and let through, of the last minute and hour. Counting is sampled, so that it
 * costs next to nothing however many decisions there are; up to about a thousand a second all are counted.
 */
export class TopBuckets {
  /** Looks at some of what is counted; the others need not be told. */
  readonly samplers: Readonly<Record<TopMeasure, HitSampler>>;
  readonly #options: TopBucketsOptions;
  readonly #sketches: Readonly<Record<TopMeasure, Sketches>>;
  #adaptedMicros: number;

  constructor(options: TopBucketsOptions) {
    this.#options = options;
    const { capacity, nowMicros, random } = options;
    this.#adaptedMicros = nowMicros();
    this.samplers = { denied: new HitSampler(random), used: new HitSampler(random) };
    const over = (span: TopSpan): HittersOverTime<BucketAbout> =>
      new HittersOverTime(capacity, SLICE_SECONDS[span] * MICROS, this.#adaptedMicros);
    this.#sketches = {
      denied: { minute: over('minute'), hour: over('hour') },
      used: { minute: over('minute'), hour: over('hour') },
    };
  }

  /** What is known of a bucket, by its key. */
  find(key: string): BucketAbout | undefined {
    const { denied, used } = this.#sketches;
    const known =
      used.minute.known(key) ?? denied.minute.known(key) ?? used.hour.known(key) ?? denied.hour.known(key);
    return known?.about;
  }

  /** Counts what a sampler drew; `about` is what {@link find} knows, if it knows the bucket. */
  count(measure: TopMeasure, about: BucketAbout, hits: number): void {
    const { minute, hour } = this.#sketches[measure];
    const { every } = this.samplers[measure];
    minute.add(about.key, about, hits, every);
    hour.add(about.key, about, hits, every);
  }

  /** To be called about once a second. */
  tick(): void {
    const nowMicros = this.#options.nowMicros();
    const elapsedSeconds = (nowMicros - this.#adaptedMicros) / MICROS;
    this.#adaptedMicros = nowMicros;
    for (const measure of MEASURES) {
      this.samplers[measure].adapt(elapsedSeconds);
      for (const span of ['minute', 'hour'] as const) this.#sketches[measure][span].goOn(nowMicros);
    }
  }

  /**
   * The at most `most` buckets with the highest estimates, those first; where there are fewer, the others that anything
   * is known of follow. '' is a pause.
   */
  *rank(by: TopMeasure, filter: TopFilter, most: number): Generator<'', readonly TopRow[]> {
    const keys = new Set<string>();
    for (const measure of by === 'denied' ? MEASURES : MEASURES.toReversed()) {
      if (keys.size < most) yield* this.#addFirst(keys, measure, filter, most);
    }
    return yield* this.look(filter.of, [...keys]);
  }

  /** Adds those of one measure, the first of them first, until there are `most`. */
  *#addFirst(keys: Set<string>, by: TopMeasure, filter: TopFilter, most: number): Generator<''> {
    const { of, domain, rule } = filter;
    const best = new Most<readonly [key: string, Estimate<BucketAbout>]>(most - keys.size, (one, other) => {
      return other[1].count - one[1].count || (one[0] < other[0] ? -1 : 1);
    });
    let seen = 0;
    for (const one of yield* estimatesOf(this.#read(by, of))) {
      if (++seen % 64 === 0) yield '';
      const [key, { about }] = one;
      if (domain !== undefined && about.domain !== domain) continue;
      if ((rule === undefined || about.rule === rule) && !keys.has(key)) best.add(one);
    }
    for (const [key] of best.inOrder) keys.add(key);
  }

  /** What was counted of the buckets of these keys, in their order; '' is a pause. */
  *look(of: TopSpan, keys: readonly string[]): Generator<'', readonly TopRow[]> {
    const rows: TopRow[] = [];
    for (const key of keys) {
      const denied = this.#sketches.denied[of].estimate(key);
      const used = this.#sketches.used[of].estimate(key);
      rows.push({
        key,
        about: used.about ?? denied.about,
        denied: denied.count,
        deniedError: denied.error,
        used: used.count,
        usedError: used.error,
      });
      if (rows.length % 32 === 0) yield '';
    }
    return rows;
  }

  about(of: TopSpan): TopSpanAbout {
    const denied = this.#read('denied', of);
    const used = this.#read('used', of);
    return {
      error: { denied: denied.floor, used: used.floor },
      coversMicros: used.coversMicros,
      sampled: Math.max(denied.every, used.every),
    };
  }

  #read(measure: TopMeasure, of: TopSpan): ReadSpan<BucketAbout> {
    return this.#sketches[measure][of].read(this.#options.nowMicros());
  }
}
