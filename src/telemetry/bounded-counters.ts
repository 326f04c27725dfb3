/**
 * Counters by label values that callers choose, bounded: past the bound everything new counts as `other`. Nested maps instead of
 * joined strings keep the hot path free of allocation and label sets unambiguous.
 */
export class BoundedCounters {
  readonly #limit: SeriesLimit;
  readonly #slots: number;
  readonly #byFirst = new Map<string, Map<string, number[]>>();
  #overflow: number[] | undefined;

  /** @param slots how many numbers each series holds */
  constructor(limit: SeriesLimit, slots: number) {
    this.#limit = limit;
    this.#slots = slots;
  }

  /** The numbers of one series, to be counted up in place. */
  series(first: string, second: string): number[] {
    return this.#byFirst.get(first)?.get(second) ?? this.#add(first, second);
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

  /** Every series, the overflow last under `other`. */
  *entries(): Generator<readonly [first: string, second: string, values: readonly number[]]> {
    for (const [first, bySecond] of this.#byFirst) {
      for (const [second, values] of bySecond) yield [first, second, values];
    }
    if (this.#overflow !== undefined) yield ['other', 'other', this.#overflow];
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
