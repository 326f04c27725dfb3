/** What is known of one key. */
export interface Counted<About> {
  readonly about: About;
  /** At least what was counted, and at most {@link error} above it. */
  count: number;
  readonly error: number;
}

/**
 * The keys that most was counted of, in bounded memory: the space-saving algorithm (Metwally, Agrawal, El Abbadi 2005),
 * which forgets many keys at a time instead of one with each new one. It keeps up to twice `capacity` keys, then
 * forgets all but `capacity`. A key that is not kept has at most {@link floor}, so a new one begins there.
 *
 * Of N counted in all, no estimate is more than N / (`capacity` + 1) too high, and none too low: whenever `floor` rises
 * by some amount, that amount goes off at least `capacity` + 1 keys. Every key with more than that is kept.
 */
export class HeavyHitters<About> {
  /** Most that a key may have that is not kept. */
  floor = 0;
  readonly #capacity: number;
  readonly #kept = new Map<string, Counted<About>>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Counts for a key; `about` is kept with it if it is new, and the key itself, which must not hold on to more. */
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

  /** Forgets all but `capacity` keys: those with most stay. */
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
    // As many of those that have just as much stay as there is room for.
    let room = capacity;
    for (let above = size - 1; above >= 0 && (counts[above] as number) > floor; above--) room--;
    for (const [key, { count }] of this.#kept) {
      if (count > floor || (count === floor && room-- > 0)) continue;
      this.#kept.delete(key);
    }
  }

  /** All that are kept. */
  get kept(): ReadonlyMap<string, Counted<About>> {
    return this.#kept;
  }
}
