const OTHER = 'other';

/**
 * Counters by label values that callers choose, bounded: past the bound everything new counts as `other`. Nested maps
 * instead of joined strings keep the hot path free of allocation and label sets unambiguous.
 */
export class BoundedCounters {
  readonly #limit: SeriesLimit;
  readonly #slots: number;
  readonly #otherSecond: string;
  readonly #byFirst = new Map<string, Map<string, number[]>>();
  #overflow: number[] | undefined;

  /**
   * @param slots how many numbers each series holds
   * @param otherSecond second name of what no series is left for; its first is `other`
   */
  constructor(limit: SeriesLimit, slots: number, otherSecond = 'other') {
    this.#limit = limit;
    this.#slots = slots;
    this.#otherSecond = otherSecond;
  }

  /** The numbers of one series, to be counted up in place. */
  series(first: string, second: string): number[] {
    return this.#byFirst.get(first)?.get(second) ?? this.#add(first, second);
  }

  /** Whether these are the numbers of all that no series is left for. */
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

  /**
   * Every series, the overflow last under `other`, or with the series of that name where there is one. Those that come
   * while this is read may be left out.
   */
  *entries(): Generator<readonly [first: string, second: string, values: readonly number[]]> {
    const otherSecond = this.#otherSecond;
    let shown = false;
    for (const [first, bySecond] of this.#byFirst) {
      for (const [second, values] of bySecond) {
        if (first === OTHER && second === otherSecond) {
          shown = true;
          yield [first, second, this.#withOverflow(values)];
        } else yield [first, second, values];
      }
    }
    if (shown || this.#overflow === undefined) return;
    yield [OTHER, otherSecond, this.#withOverflow(this.#byFirst.get(OTHER)?.get(otherSecond) ?? [])];
  }

  /** The numbers of every series themselves, the overflow last under `other`; see {@link entries}. */
  *kept(): Generator<readonly [first: string, second: string, values: number[]]> {
    for (const [first, bySecond] of this.#byFirst) {
      for (const [second, values] of bySecond) yield [first, second, values];
    }
    if (this.#overflow !== undefined) yield [OTHER, this.#otherSecond, this.#overflow];
  }

  #withOverflow(values: readonly number[]): readonly number[] {
    return this.#overflow?.map((value, at) => value + (values[at] ?? 0)) ?? values;
  }
}

/** A budget of series that {@link BoundedCounters} share (METRICS_MAX_SERIES). */
export class SeriesLimit {
  readonly #most: number;
  #taken = 0;
  /** How often a series was refused. */
  refused = 0;

  constructor(most: number) {
    this.#most = most;
  }

  take(): boolean {
    if (this.#taken >= this.#most) {
      this.refused++;
      return false;
    }
    this.#taken++;
    return true;
  }

  /** A series is gone: another one may come. */
  giveBack(): void {
    this.#taken--;
  }
}
