/**
 * Of longer texts V8's search (Boyer and Moore) knows the last units only: it may compare all of one at each place of a
 * value (kBMMaxShift).
 */
const MAX_SHIFT_UNITS = 250;

/** A value pattern: `*` stands for any characters, none included. Everything else stands for itself. */
export class Wildcard {
  readonly pattern: string;
  readonly prefix: string;
  readonly suffix: string;
  /** What must come between prefix and suffix, in this order. */
  readonly middle: readonly string[];
  /** Units of what must come between that may be compared at each place of a value. */
  readonly slowUnits: number;
  private readonly fixedLength: number;

  /** `pattern` holds at least one `*`. */
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
   * Whether the whole value matches. Taking the leftmost place for each middle part is enough, as it leaves the most
   * room for the next: no backtracking, whatever a caller sends.
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
   * Whether the value is long enough, and begins and ends as it must: all that is asked where nothing must come
   * between.
   */
  mayMatch(value: string): boolean {
    if (value.length < this.fixedLength) return false;
    return value.startsWith(this.prefix) && value.endsWith(this.suffix);
  }
}
