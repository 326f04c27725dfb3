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

  /** Returns false if a value of `bytes` is too long for regular expressions. */
  admitsRegexValue(bytes: number): boolean {
    if (bytes <= this.maxRegexValueBytes) return true;
    this.exceeded ??= 'regex_value';
    return false;
  }
}
