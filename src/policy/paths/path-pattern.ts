import { EXCEEDED, type MatchWork, unboundedWork } from '../match-work.js';
import { parsePathPattern } from './parse-path-pattern.js';
import { firstSlash, matchesFrom, type Segment } from './path-segments.js';

export { MAX_ALTERNATIVES, MAX_PATH_PATTERN_LENGTH } from './parse-path-pattern.js';

/** What looking at one alternative takes, in steps. */
const ALTERNATIVE_STEPS = 4;

/*
 * Path patterns of `derive`: `*` any characters of one segment, `?` one character of it, `[a-z]` and `[!a-z]` one of a
 * set, `{v4,v5}` alternatives, `**` (a segment of its own) any number of segments, none included, `\\` takes the
 * meaning from the next character. Names that begin with a dot are nothing special, and a line break is a character
 * like any other.
 *
 * Patterns are matched against paths that callers choose, so no regular expressions. The rules of a step are matched
 * together, by SegmentTrie; a pattern by itself walks segments and characters with one point to return to (the last
 * star), which is enough for stars and takes at most |pattern| × |path| steps.
 */

/** A compiled path pattern. */
export class PathPattern {
  readonly source: string;
  /** What its braces stand for; one of them must match. */
  readonly alternatives: readonly (readonly Segment[])[];

  private constructor(source: string, alternatives: readonly (readonly Segment[])[]) {
    this.source = source;
    this.alternatives = alternatives;
  }

  /** Compiles a pattern, or returns the sentence that says why it is none. */
  static parse(source: string): PathPattern | string {
    const alternatives = parsePathPattern(source);
    return typeof alternatives === 'string' ? alternatives : new PathPattern(source, alternatives);
  }

  /** Whether a path, as `normalisePath` gives it, matches as a whole, whatever it takes. */
  matches(path: string): boolean {
    return this.matchesWithin(path, unboundedWork()) === true;
  }

  /** {@link matches}, as far as there is work left. */
  matchesWithin(path: string, work: MatchWork): boolean | typeof EXCEEDED {
    for (let i = 0; i < this.alternatives.length; i++) {
      if (!work.spend(ALTERNATIVE_STEPS)) return EXCEEDED;
      const alternative = this.alternatives[i] as readonly Segment[];
      const matches = matchesFrom(alternative, 0, path, firstSlash(path), work);
      if (matches !== false) return matches;
    }
    return false;
  }
}
