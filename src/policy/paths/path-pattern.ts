import { MatchWork } from '../match-work.js';
import { parsePathPattern } from './parse-path-pattern.js';
import { firstSlash, matchesFrom, type Segment } from './path-segments.js';

export { MAX_ALTERNATIVES, MAX_PATH_PATTERN_LENGTH } from './parse-path-pattern.js';

/*
 * Path patterns of `derive`: `*` matches any characters of one segment, `?` one character of it, `[a-z]` and `[!a-z]`
 * one of a set, and `{v4,v5}` one of several alternatives. `**` must be a whole segment. It matches any number of
 * segments, including none. `\\` makes the next character literal. Names that begin with a dot are not special, and a
 * line break is an ordinary character.
 *
 * Callers choose the paths, so patterns are not regular expressions. SegmentTrie matches all rules of a step together.
 * A single pattern walks segments and characters, and returns only to its last star, which is sufficient for stars and
 * takes at most |pattern| × |path| steps.
 */

/** A compiled path pattern. */
export class PathPattern {
  readonly source: string;
  /** Expansions of its braces, one of which must match. */
  readonly alternatives: readonly (readonly Segment[])[];

  private constructor(source: string, alternatives: readonly (readonly Segment[])[]) {
    this.source = source;
    this.alternatives = alternatives;
  }

  /** Compiles a pattern. Returns an error message if it is invalid. */
  static parse(source: string): PathPattern | string {
    const alternatives = parsePathPattern(source);
    return typeof alternatives === 'string' ? alternatives : new PathPattern(source, alternatives);
  }

  /** Returns whether a whole path, in its normal form, matches. The result means nothing if `work` is exceeded. */
  matches(path: string, work = new MatchWork()): boolean {
    const slash = firstSlash(path);
    return this.alternatives.some((alternative) => matchesFrom(alternative, 0, path, slash, work));
  }
}
