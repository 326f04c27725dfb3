/** So many values make a generation; two are kept. */
const GENERATION_VALUES = 4096;
/** Longer values, in UTF-16 units, are matched each time. */
const MAX_VALUE_UNITS = 256;

/**
 * Remembers what values were found to match, for all levels of a domain together, so that their number does not count:
 * about 5 MB at most. What is asked for again within the next 4,096 new values stays; a flood of new ones costs each of
 * them the time to be remembered, and nothing else.
 */
export class MatchMemo<Found> {
  private recent = new Map<object, Map<string, Found>>();
  private older = new Map<object, Map<string, Found>>();
  private count = 0;

  /** What {@link set} was given for the value at this level. */
  get(level: object, value: string): Found | undefined {
    const known = this.recent.get(level)?.get(value);
    if (known !== undefined) return known;
    const before = this.older.get(level)?.get(value);
    if (before !== undefined) this.set(level, value, before);
    return before;
  }

  set(level: object, value: string, found: Found): void {
    if (value.length > MAX_VALUE_UNITS) return;
    if (this.count === GENERATION_VALUES) {
      this.older = this.recent;
      this.recent = new Map();
      this.count = 0;
    }
    this.count++;
    const values = this.recent.get(level);
    if (values === undefined) this.recent.set(level, new Map([[value, found]]));
    else values.set(value, found);
  }
}
