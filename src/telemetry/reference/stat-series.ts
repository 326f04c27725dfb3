/** Counters wrap at this value, so that adding one always changes them. Prometheus treats that as a restart. */
const WRAP = 2 ** 53;

/** Returns `value + more`, wrapped. Both are whole numbers from 0 to below 2^53. */
export function counted(value: number, more: number): number {
  const sum = value + more;
  return sum < WRAP ? sum : sum - WRAP;
}

/** Counters with a common prefix of their names. */
export class StatSeries {
  readonly #prefix: string;
  readonly #suffixes: readonly string[];
  /** Current values, incremented in place. */
  readonly values: number[];
  /** Values that sinks last read. */
  readonly #reported: number[];
  /**
   * Whether the series changed since sinks last read it. The code that sets it adds the series to {@link
   * ReferenceStats.takeChanged}.
   */
  changed = false;

  /** @param prefix escaped, with a trailing dot */
  constructor(prefix: string, suffixes: readonly string[]) {
    this.#prefix = prefix;
    this.#suffixes = suffixes;
    this.values = suffixes.map(() => 0);
    this.#reported = suffixes.map(() => 0);
  }

  /** Returns the full name of the counter at an index of `values`. */
  nameAt(at: number): string {
    return this.#prefix + this.#suffixes[at];
  }

  /** Calls `onDelta` for each counter that increased since the previous call, with the increase. */
  takeDeltas(onDelta: (name: string, delta: number) => void): void {
    this.changed = false;
    for (let i = 0; i < this.values.length; i++) {
      const value = this.values[i] as number;
      const told = this.#reported[i] as number;
      if (value === told) continue;
      this.#reported[i] = value;
      onDelta(this.nameAt(i), value > told ? value - told : WRAP - told + value);
    }
  }
}
