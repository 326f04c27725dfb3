import { HeavyHitters, type TrackedKey } from './heavy-hitters.js';

/** Number of slices that cover a span, including the current one. */
export const SLICES = 7;

/** Estimated count of a key in a span: from `count` minus `error` to `count`. */
export interface Estimate<About> {
  /** Undefined if no slice keeps the key. */
  readonly about: About;
  readonly count: number;
  readonly error: number;
}

/** Counts in a span. They change with the next call that counts. */
export interface SpanCounts<About> {
  /** Upper bound of the count of an unknown key, and of the error of any estimate. */
  readonly floor: number;
  /** Microseconds that the span covers. */
  readonly coversMicros: number;
  /** Highest `hitsPerSample` in the span; see {@link SlidingHeavyHitters.add}. */
  readonly hitsPerSample: number;
  /** Slices, newest first. */
  readonly slices: readonly HeavyHitters<About>[];
}

interface Slice<About> {
  readonly hitters: HeavyHitters<About>;
  readonly startMicros: number;
  hitsPerSample: number;
}

/**
 * {@link HeavyHitters} of the last minute or hour, in slices of time. The oldest slice is dropped when a new one
 * starts.
 */
export class SlidingHeavyHitters<About> {
  readonly #sliceMicros: number;
  readonly #capacity: number;
  /** Slices, oldest first; never empty. */
  #slices: readonly Slice<About>[];
  #newest: Slice<About>;

  constructor(capacity: number, sliceMicros: number, nowMicros: number) {
    this.#capacity = capacity;
    this.#sliceMicros = sliceMicros;
    this.#newest = this.#slice(nowMicros);
    this.#slices = [this.#newest];
  }

  /** Returns the count of a key in the current slice. */
  findCurrent(key: string): TrackedKey<About> | undefined {
    return this.#newest.hitters.kept.get(key);
  }

  /** Adds to the count of a key; see {@link HeavyHitters.add}. `hitsPerSample` is the number of hits per sample. */
  add(key: string, about: About, count: number, hitsPerSample: number): void {
    const slice = this.#newest;
    slice.hitters.add(key, about, count);
    if (hitsPerSample > slice.hitsPerSample) slice.hitsPerSample = hitsPerSample;
  }

  /** Starts a new slice when it is due, and drops expired ones. */
  advance(nowMicros: number): void {
    const newest = this.#newest;
    if (nowMicros - newest.startMicros < this.#sliceMicros) return;
    newest.hitters.trim();
    this.#newest = this.#slice(nowMicros);
    const oldest = nowMicros - SLICES * this.#sliceMicros;
    const kept = this.#slices.filter(({ startMicros }) => startMicros > oldest);
    this.#slices = [...kept.slice(1 - SLICES), this.#newest];
  }

  /** Returns the estimate of one key. */
  estimate(key: string): Estimate<About | undefined> {
    let about: About | undefined;
    let count = 0;
    let error = 0;
    for (const { hitters } of this.#slices) {
      const counted = hitters.kept.get(key);
      // The newest slice is the last.
      about = counted?.about ?? about;
      count += counted?.count ?? hitters.floor;
      error += counted?.error ?? hitters.floor;
    }
    return { about, count, error };
  }

  /** Returns the counts of the span. */
  read(nowMicros: number): SpanCounts<About> {
    const slices = [...this.#slices].reverse();
    return {
      floor: slices.reduce((sum, { hitters }) => sum + hitters.floor, 0),
      coversMicros: nowMicros - (this.#slices[0] as Slice<About>).startMicros,
      hitsPerSample: slices.reduce((most, { hitsPerSample }) => Math.max(most, hitsPerSample), 1),
      slices: slices.map(({ hitters }) => hitters),
    };
  }

  #slice(startMicros: number): Slice<About> {
    return { hitters: new HeavyHitters<About>(this.#capacity), startMicros, hitsPerSample: 1 };
  }
}

/** Adds up the slices of a span. Returns an estimate of each key that any slice keeps. */
export function estimatesOf<About>({ floor, slices }: SpanCounts<About>): Map<string, Estimate<About>> {
  const sums = new Map<string, { readonly about: About; count: number; error: number }>();
  for (const slice of slices) {
    for (const [key, { about, count, error }] of slice.kept) {
      const sum = sums.get(key);
      // The count of a key in a slice that does not keep it may be as high as the floor of that slice.
      if (sum === undefined) {
        sums.set(key, { about, count: floor + count - slice.floor, error: floor + error - slice.floor });
      } else {
        sum.count += count - slice.floor;
        sum.error += error - slice.floor;
      }
    }
  }
  return sums;
}
