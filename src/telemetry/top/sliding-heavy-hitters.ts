/** Estimated count of a key. */
interface TrackedKey<About> {
  readonly about: About;
  /** Upper bound of the true count. It is too high by at most {@link error}. */
  count: number;
  readonly error: number;
}

/**
 * Keys with the highest counts, in bounded memory: the space-saving algorithm (Metwally, Agrawal, El Abbadi 2005), with
 * evictions in batches. It keeps up to twice `capacity` keys, then evicts all but `capacity`. The count of an evicted
 * key is at most {@link floor}, which is therefore the initial estimate of a new key.
 *
 * For a total of N, estimates are at most N / (`capacity` + 1) too high, and never too low: whenever `floor` rises by
 * some amount, at least `capacity` + 1 keys lose that amount. Every key with a higher count is kept.
 */
class HeavyHitters<About> {
  /** Upper bound of the counts of evicted keys. */
  floor = 0;
  readonly #capacity: number;
  readonly #kept = new Map<string, TrackedKey<About>>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /**
   * Adds to the count of a key. A new key is kept with `about`. Neither may be a slice of a longer string, which would
   * stay in memory.
   */
  add(key: string, about: About, count: number): void {
    const known = this.#kept.get(key);
    if (known !== undefined) {
      known.count += count;
      return;
    }
    const { floor } = this;
    this.#kept.set(key, { about, count: floor + count, error: floor });
    if (this.#kept.size >= 2 * this.#capacity) this.trim();
  }

  /** Evicts all but the `capacity` keys with the highest counts. */
  trim(): void {
    const { size } = this.#kept;
    const capacity = this.#capacity;
    if (size <= capacity) return;
    const counts = new Float64Array(size);
    let at = 0;
    for (const { count } of this.#kept.values()) counts[at++] = count;
    counts.sort();
    const floor = counts[size - capacity - 1] as number;
    this.floor = floor;
    // Keys whose count equals the floor stay as long as they fit.
    let room = capacity;
    for (let above = size - 1; above >= 0 && (counts[above] as number) > floor; above--) room--;
    for (const [key, { count }] of this.#kept) {
      if (count > floor || (count === floor && room-- > 0)) continue;
      this.#kept.delete(key);
    }
  }

  get kept(): ReadonlyMap<string, TrackedKey<About>> {
    return this.#kept;
  }
}

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
