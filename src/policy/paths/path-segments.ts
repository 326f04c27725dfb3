import type { MatchWork } from '../match-work.js';

/** One character of a segment's pattern. */
export type Token =
  | { readonly kind: 'char'; readonly unit: number }
  | { readonly kind: 'any' }
  | { readonly kind: 'star' }
  | {
      readonly kind: 'set';
      readonly negated: boolean;
      /** First and last UTF-16 units. */
      readonly ranges: readonly (readonly [number, number])[];
    };

/** A segment other than a string with at most one star. */
export interface TokenSegment {
  readonly kind: 'tokens';
  readonly tokens: readonly Token[];
  /** The text before the first special character, and the text after the last one. */
  readonly head: string;
  readonly tail: string;
  /** Minimum number of UTF-16 units that match. */
  readonly minUnits: number;
}

/** Pattern of one segment of a path or, with `any`, of any number of segments: `**`. */
export type Segment =
  | { readonly kind: 'any' }
  | { readonly kind: 'literal'; readonly text: string }
  /** A string with one `*`. */
  | { readonly kind: 'star'; readonly prefix: string; readonly suffix: string }
  | TokenSegment;

/** Units (MatchWork) for a segment, in addition to its characters. */
const SEGMENT_UNITS = 20;
/** Units for a character. */
const TOKEN_UNITS = 5;

/** Returns the end of the segment after the slash at `at`. */
function segmentEnd(path: string, at: number): number {
  const end = path.indexOf('/', at + 1);
  return end < 0 ? path.length : end;
}

/** Returns the slash of the first segment of a normalized path; the end of the path if it has none. */
export function firstSlash(path: string): number {
  return path === '/' ? 1 : 0;
}

/** Returns the index of the last `**` in a pattern, or -1 if the pattern has none. */
function lastDoubleStar(segments: readonly Segment[]): number {
  let last = segments.length - 1;
  while (last >= 0 && segments[last]?.kind !== 'any') last--;
  return last;
}

/** Returns the text with which every path that matches a pattern ends. */
export function literalSuffix(segments: readonly Segment[]): string {
  let text = '';
  for (let i = segments.length - 1; i >= 0; i--) {
    const segment = segments[i] as Segment;
    if (segment.kind === 'any') break;
    if (segment.kind === 'literal') {
      text = `/${segment.text}${text}`;
      continue;
    }
    return (segment.kind === 'star' ? segment.suffix : segment.tail) + text;
  }
  return text;
}

/**
 * Returns whether a path, starting with the slash at `start`, matches the segments from `from` on. `**` works for
 * segments as `*` does for characters: the search returns to the last one and extends it by one. The segments after the
 * last one are compared with the end of the path at once. The result means nothing if `work` is exceeded.
 */
export function matchesFrom(
  segments: readonly Segment[],
  from: number,
  path: string,
  start: number,
  work: MatchWork,
): boolean {
  const last = lastDoubleStar(segments);
  let p = from;
  let at = start;
  let anyP = -1;
  let anyAt = 0;
  for (;;) {
    const segment = segments[p];
    if (segment?.kind === 'any') {
      if (p === last) {
        anyP = -1;
        at = tailStart(path, segments.length - 1 - p, at);
        if (at < 0) return false;
      } else {
        anyP = p;
        anyAt = at;
      }
      p++;
      continue;
    }
    if (at === path.length) return p === segments.length;
    const end = segmentEnd(path, at);
    if (!work.charge(SEGMENT_UNITS + ((end - at) >> 4))) return false;
    if (segment !== undefined && matchesSegment(segment, path, at + 1, end, work)) {
      p++;
      at = end;
      continue;
    }
    if (anyP < 0) return false;
    p = anyP + 1;
    anyAt = segmentEnd(path, anyAt);
    at = anyAt;
  }
}

/** Returns the slash before the last `count` segments of a path; -1 if it is before `least`, or if there are fewer. */
function tailStart(path: string, count: number, least: number): number {
  let at = path.length;
  for (let i = 0; i < count; i++) {
    if (at <= least) return -1;
    at = path.lastIndexOf('/', at - 1);
  }
  return at < least ? -1 : at;
}

/** Returns whether one segment, from `from` to `to` of a path, matches. `**` never does. */
function matchesSegment(
  segment: Exclude<Segment, { kind: 'any' }>,
  path: string,
  from: number,
  to: number,
  work: MatchWork,
): boolean {
  switch (segment.kind) {
    case 'literal':
      return segment.text.length === to - from && path.startsWith(segment.text, from);
    case 'star': {
      const { prefix, suffix } = segment;
      return prefix.length + suffix.length <= to - from && hasEnds(path, from, to, prefix, suffix);
    }
    case 'tokens':
      if (segment.minUnits > to - from || !hasEnds(path, from, to, segment.head, segment.tail)) return false;
      return matchesTokens(segment.tokens, path, from, to, work);
  }
}

export function hasEnds(path: string, from: number, to: number, head: string, tail: string): boolean {
  return path.startsWith(head, from) && path.startsWith(tail, to - tail.length);
}

/**
 * Returns whether a string matches. Returning to the last star is sufficient, so it takes at most tokens times
 * characters steps.
 */
function matchesTokens(
  tokens: readonly Token[],
  path: string,
  from: number,
  to: number,
  work: MatchWork,
): boolean {
  let t = 0;
  let i = from;
  let starT = -1;
  let starI = 0;
  while (i < to) {
    const token = tokens[t];
    if (token?.kind === 'star') {
      starT = t++;
      starI = i;
      continue;
    }
    if (!work.charge(token?.kind === 'set' ? TOKEN_UNITS + token.ranges.length : TOKEN_UNITS)) return false;
    const width = token === undefined ? 0 : matchToken(token, path, i);
    if (width > 0) {
      t++;
      i += width;
    } else if (starT >= 0) {
      // A star at the end matches the rest.
      if (starT === tokens.length - 1) return true;
      t = starT + 1;
      i = ++starI;
    } else {
      return false;
    }
  }
  while (tokens[t]?.kind === 'star') t++;
  return t === tokens.length;
}

/** Returns the number of UTF-16 units that a token matches at `i`; 0 if it does not match. */
function matchToken(token: Token, path: string, i: number): number {
  switch (token.kind) {
    case 'char':
      return path.charCodeAt(i) === token.unit ? 1 : 0;
    case 'any':
      return characterWidth(path, i);
    case 'set': {
      if (isInside(token.ranges, path.charCodeAt(i)) === token.negated) return 0;
      return token.negated ? characterWidth(path, i) : 1;
    }
    case 'star':
      return 0;
  }
}

function isInside(ranges: readonly (readonly [number, number])[], unit: number): boolean {
  for (let i = 0; i < ranges.length; i++) {
    const [low, high] = ranges[i] as readonly [number, number];
    if (unit >= low && unit <= high) return true;
  }
  return false;
}

/** Returns the number of UTF-16 units of the character at `i`: two for those beyond U+FFFF. */
function characterWidth(text: string, i: number): number {
  return (text.codePointAt(i) as number) > 0xffff ? 2 : 1;
}

/** Extracts the segments of one path on demand, each only once. Reused for one path after the other. */
export class PathCursor {
  /** The path in its normal form. */
  path = '';
  /** The ends of segments that are known so far. */
  private readonly ends: number[] = [];
  /** Extracted segments; '' if not extracted, because no segment is empty. */
  private readonly texts: string[] = [];
  private known = 0;

  open(path: string): void {
    this.path = path;
    this.known = 0;
  }

  /** Releases the path, whose segments may be long. */
  close(): void {
    for (let i = 0; i < this.known; i++) this.texts[i] = '';
    this.path = '';
    this.known = 0;
  }

  /**
   * Returns the index of the slash before the segment at `depth`, from 0: the end of the previous segment, which must
   * be known.
   */
  slash(depth: number): number {
    return depth === 0 ? firstSlash(this.path) : (this.ends[depth - 1] as number);
  }

  /** Returns the end of the segment at `depth`; -1 if the path ends before. */
  end(depth: number): number {
    if (depth < this.known) return this.ends[depth] as number;
    const slash = this.slash(depth);
    if (slash === this.path.length) return -1;
    const end = segmentEnd(this.path, slash);
    this.ends[depth] = end;
    this.texts[depth] = '';
    this.known = depth + 1;
    return end;
  }

  /** The end of the segment must be known. */
  text(depth: number): string {
    const known = this.texts[depth] as string;
    if (known !== '') return known;
    const text = this.path.slice(this.slash(depth) + 1, this.ends[depth]);
    this.texts[depth] = text;
    return text;
  }
}
