/** Default maximum of matching work for one request, in units that take up to 4 ns: about 1 ms of CPU time. */
export const DEFAULT_MAX_MATCH_WORK = 262_144;
/** Default maximum length of a value that regular expressions are tried on, in bytes of UTF-8. */
export const DEFAULT_MAX_REGEX_VALUE_BYTES = 4096;

/** Units for trying a pattern, in addition to those for the bytes of the value. */
const PATTERN_UNITS = 64;

/** A bound of matching that a request exceeded. */
export type MatchBound = 'match_work' | 'regex_value';

/**
 * The matching work of one request. Work is counted rather than measured, so that a busy machine makes the same
 * decisions. Once {@link exceeded} is set, the results of matching mean nothing, and the request must be given up.
 */
export class MatchWork {
  /** The first bound that the request exceeded. */
  exceeded: MatchBound | undefined;
  private readonly maxUnits: number;
  private readonly maxRegexValueBytes: number;
  private unitsLeft: number;

  /** Without arguments, matching has no bounds, which is for tools. */
  constructor(maxUnits = Number.POSITIVE_INFINITY, maxRegexValueBytes = Number.POSITIVE_INFINITY) {
    this.maxUnits = maxUnits;
    this.maxRegexValueBytes = maxRegexValueBytes;
    this.unitsLeft = maxUnits;
  }

  /** Starts the next request. */
  reset(): void {
    this.exceeded = undefined;
    this.unitsLeft = this.maxUnits;
  }

  /** Charges for work. Returns false if the bound is passed; the work must not be done then. */
  charge(units: number): boolean {
    this.unitsLeft -= units;
    if (this.unitsLeft >= 0) return true;
    this.exceeded ??= 'match_work';
    return false;
  }

  /** Charges for trying one pattern on a value of `bytes`; see {@link charge}. */
  chargePattern(bytes: number): boolean {
    return this.charge(PATTERN_UNITS + bytes);
  }

  /** False if a value of `bytes` is too long for regular expressions. */
  admitsRegexValue(bytes: number): boolean {
    if (bytes <= this.maxRegexValueBytes) return true;
    this.exceeded ??= 'regex_value';
    return false;
  }
}

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
