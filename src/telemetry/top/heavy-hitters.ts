/** Estimated count of a key. */
export interface TrackedKey<About> {
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
export class HeavyHitters<About> {
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

  /** All keys that are kept. */
  get kept(): ReadonlyMap<string, TrackedKey<About>> {
    return this.#kept;
  }
}
