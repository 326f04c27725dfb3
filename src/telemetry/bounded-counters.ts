const OTHER = 'other';

/**
 * Counters by label values that callers choose, with a bounded number of series. Beyond the bound, new series count as
 * `other`. Nested maps instead of joined strings avoid allocations on the hot path and ambiguous label sets.
 */
export class BoundedCounters {
  readonly #limit: SeriesBudget;
  readonly #slots: number;
  readonly #otherSecond: string;
  readonly #byFirst = new Map<string, Map<string, number[]>>();
  #overflow: number[] | undefined;

  /**
   * @param slots number of values of each series
   *
   * @param otherSecond second label value of the overflow series; the first one is `other`
   */
  constructor(limit: SeriesBudget, slots: number, otherSecond = 'other') {
    this.#limit = limit;
    this.#slots = slots;
    this.#otherSecond = otherSecond;
  }

  /** The caller increments the values in place. */
  series(first: string, second: string): number[] {
    return this.#byFirst.get(first)?.get(second) ?? this.#add(first, second);
  }

  increment(first: string, second: string, slot: number): void {
    const values = this.series(first, second);
    values[slot] = (values[slot] as number) + 1;
  }

  /** Returns whether these are the values of the overflow series. */
  isOverflow(values: readonly number[]): boolean {
    return values === this.#overflow;
  }

  #add(first: string, second: string): number[] {
    if (!this.#limit.take()) {
      this.#overflow ??= new Array<number>(this.#slots).fill(0);
      return this.#overflow;
    }
    const created = new Array<number>(this.#slots).fill(0);
    const bySecond = this.#byFirst.get(first);
    if (bySecond === undefined) this.#byFirst.set(first, new Map([[second, created]]));
    else bySecond.set(second, created);
    return created;
  }

  /** Calls `visit` for every series. The overflow comes last, as `other`, or is added to a series with that name. */
  forEach(visit: (first: string, second: string, values: readonly number[]) => void): void {
    const otherSecond = this.#otherSecond;
    let shown = false;
    for (const [first, bySecond] of this.#byFirst) {
      for (const [second, values] of bySecond) {
        const isOther = first === OTHER && second === otherSecond;
        shown ||= isOther;
        visit(first, second, isOther ? this.#withOverflow(values) : values);
      }
    }
    if (!shown && this.#overflow !== undefined) visit(OTHER, otherSecond, this.#overflow);
  }

  /** Calls `visit` with the values of every series themselves, with the overflow last; see {@link forEach}. */
  forEachMutable(visit: (first: string, second: string, values: number[]) => void): void {
    for (const [first, bySecond] of this.#byFirst) {
      for (const [second, values] of bySecond) visit(first, second, values);
    }
    if (this.#overflow !== undefined) visit(OTHER, this.#otherSecond, this.#overflow);
  }

  #withOverflow(values: readonly number[]): readonly number[] {
    return this.#overflow?.map((value, at) => value + (values[at] ?? 0)) ?? values;
  }
}

/** A number of series that several {@link BoundedCounters} share (METRICS_MAX_SERIES). */
export class SeriesBudget {
  readonly #max: number;
  #taken = 0;
  /** Number of series that were refused. */
  refused = 0;

  constructor(most: number) {
    this.#max = most;
  }

  take(): boolean {
    if (this.#taken >= this.#max) {
      this.refused++;
      return false;
    }
    this.#taken++;
    return true;
  }

  release(): void {
    this.#taken--;
  }
}
