/** Counts wrap here, so that adding one always changes them; Prometheus takes that for a restart. */
const WRAP = 2 ** 53;

/** `value + more`, wrapped. Both are whole numbers from 0 below 2^53. */
export function counted(value: number, more: number): number {
  const sum = value + more;
  return sum < WRAP ? sum : sum - WRAP;
}

/** Counters that belong together: one name in front, one number for each name behind it. */
export class StatSeries {
  readonly #prefix: string;
  readonly #suffixes: readonly string[];
  /** Counted up in place. */
  readonly values: number[];
  /** What sinks were told of. */
  readonly #told: number[];
  /** Whether it counted since it was told; whoever sets it lists the series for {@link ReferenceStats.takeChanged}. */
  changed = false;

  /** @param prefix sanitised, with its dot at the end */
  constructor(prefix: string, suffixes: readonly string[]) {
    this.#prefix = prefix;
    this.#suffixes = suffixes;
    this.values = suffixes.map(() => 0);
    this.#told = suffixes.map(() => 0);
  }

  /** Full name of a counter, by its place in `values`. */
  nameAt(at: number): string {
    return this.#prefix + this.#suffixes[at];
  }

  /** Calls `tell` for each counter that grew since the last time, with how much it grew. */
  takeDeltas(tell: (name: string, delta: number) => void): void {
    this.changed = false;
    for (let i = 0; i < this.values.length; i++) {
      const value = this.values[i] as number;
      const told = this.#told[i] as number;
      if (value === told) continue;
      this.#told[i] = value;
      tell(this.nameAt(i), value > told ? value - told : WRAP - told + value);
    }
  }
}
