/** Units (MatchWork) for each byte of a value in which strings between stars are searched: up to 8 ns. */
const SEARCH_UNITS = 2;
/**
 * V8's search (Boyer-Moore) uses only the last characters of longer strings (kBMMaxShift), and may compare a whole
 * string at each position of a value, 16 characters in the time of a unit.
 */
const MAX_SHIFT_LENGTH = 250;
const COMPARED_PER_UNIT = 16;

/** A value pattern: `*` matches any characters, including none. All other characters are literal. */
export class Wildcard {
  readonly pattern: string;
  readonly prefix: string;
  readonly suffix: string;
  /** Strings that must occur between prefix and suffix, in this order. */
  readonly middle: readonly string[];
  /** Units (MatchWork) that the pattern costs for each byte of a value. */
  readonly unitsPerByte: number;
  private readonly fixedLength: number;

  /** `pattern` contains at least one `*`. */
  constructor(pattern: string) {
    const parts = pattern.split('*');
    this.pattern = pattern;
    this.prefix = parts[0] as string;
    this.suffix = parts.at(-1) as string;
    this.middle = parts.slice(1, -1).filter((part) => part !== '');
    const compared = this.middle.reduce(
      (sum, { length }) => (length > MAX_SHIFT_LENGTH ? sum + length : sum),
      0,
    );
    this.unitsPerByte = this.middle.length === 0 ? 1 : SEARCH_UNITS + Math.ceil(compared / COMPARED_PER_UNIT);
    this.fixedLength = parts.reduce((sum, part) => sum + part.length, 0);
  }

  /**
   * Returns whether the whole value matches. Taking the leftmost position of each inner text leaves the most space for
   * the next, so no backtracking is needed.
   */
  matches(value: string): boolean {
    if (value.length < this.fixedLength) return false;
    if (!value.startsWith(this.prefix) || !value.endsWith(this.suffix)) return false;
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
}
