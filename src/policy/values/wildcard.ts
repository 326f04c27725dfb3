/**
 * V8's search (Boyer-Moore) uses only the last units of longer strings, and may compare a whole string at each position
 * of a value (kBMMaxShift).
 */
const MAX_SHIFT_UNITS = 250;

/** A value pattern: `*` matches any characters, including none. All other characters are literal. */
export class Wildcard {
  readonly pattern: string;
  readonly prefix: string;
  readonly suffix: string;
  /** Strings that must occur between prefix and suffix, in this order. */
  readonly middle: readonly string[];
  /** Units of inner strings that may be compared at each position of a value. */
  readonly slowUnits: number;
  private readonly fixedLength: number;

  /** `pattern` contains at least one `*`. */
  constructor(pattern: string) {
    const parts = pattern.split('*');
    this.pattern = pattern;
    this.prefix = parts[0] as string;
    this.suffix = parts.at(-1) as string;
    this.middle = parts.slice(1, -1).filter((part) => part !== '');
    this.slowUnits = this.middle.reduce(
      (sum, { length }) => (length > MAX_SHIFT_UNITS ? sum + length : sum),
      0,
    );
    this.fixedLength = parts.reduce((sum, part) => sum + part.length, 0);
  }

  /**
   * Returns whether the whole value matches. Taking the leftmost position of each inner text leaves the most space for
   * the next, so no backtracking is needed.
   */
  matches(value: string): boolean {
    if (!this.mayMatch(value)) return false;
    const end = value.length - this.suffix.length;
    let from = this.prefix.length;
    for (let i = 0; i < this.middle.length; i++) {
      const part = this.middle[i] as string;
      const found = value.indexOf(part, from);
      if (found < 0 || found + part.length > end) return false;
      from = found + part.length;
    }
    return true;
  }

  /**
   * Returns whether the value is long enough and has the prefix and suffix, which is sufficient without inner strings.
   */
  mayMatch(value: string): boolean {
    if (value.length < this.fixedLength) return false;
    return value.startsWith(this.prefix) && value.endsWith(this.suffix);
  }
}
