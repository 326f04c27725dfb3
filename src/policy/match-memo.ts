/** Maximum number of values in a generation; two generations are kept. */
const GENERATION_VALUES = 4096;
/** Maximum length of cached values, in UTF-16 units; longer ones are matched each time. */
const MAX_VALUE_UNITS = 256;

/**
 * Caches the results of matching for all levels of a domain together, so that their number does not matter; at most
 * about 5 MB. A value stays cached if it is used again within the next 4,096 new values. A flood of new values only
 * costs the time to cache each of them.
 */
export class MatchMemo<Found> {
  private recent = new Map<object, Map<string, Found>>();
  private older = new Map<object, Map<string, Found>>();
  private count = 0;

  /** Returns the result that was stored for the value at this level. */
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
