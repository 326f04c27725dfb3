import { MatchWork } from '../match-work.js';
import { firstSlash, matchesFrom, type Segment, type Token } from './path-segments.js';

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

/** Maximum number of alternatives that the braces of one pattern may expand to. */
const MAX_ALTERNATIVES = 256;
/** Maximum length of a pattern, in characters. */
export const MAX_PATH_PATTERN_LENGTH = 1024;

/** Returns the alternatives of a path pattern, each as its segments, or an error message. */
function parsePathPattern(source: string): readonly (readonly Segment[])[] | string {
  if (!source.startsWith('/')) return 'a path pattern must begin with "/"';
  if (source.length > MAX_PATH_PATTERN_LENGTH)
    return `a path pattern may have at most ${MAX_PATH_PATTERN_LENGTH} characters`;
  const texts = expandBraces(source);
  if (typeof texts === 'string') return texts;
  const alternatives: Segment[][] = [];
  for (const text of texts) {
    const segments = parseSegments(text);
    if (typeof segments === 'string') return segments;
    alternatives.push(segments);
  }
  return alternatives;
}

/** Skips a `[…]` set or an escaped character at `i`, so that its braces and slashes are literal. */
function skipAtom(text: string, i: number): number {
  if (text[i] === '\\') return i + 2;
  if (text[i] !== '[') return i + 1;
  let end = i + 1;
  if (text[end] === '!' || text[end] === '^') end++;
  // A leading `]` is literal.
  if (text[end] === ']') end++;
  while (end < text.length && text[end] !== ']') end += text[end] === '\\' ? 2 : 1;
  return end + 1;
}

/**
 * Expands `{a,b}`; braces may be nested. Returns a sentence if a brace is not closed, or if there are too many
 * alternatives.
 */
function expandBraces(text: string): string[] | string {
  let open = -1;
  for (let i = 0; i < text.length && open < 0; i = skipAtom(text, i)) {
    if (text[i] === '{') open = i;
    else if (text[i] === '}') return 'a "}" has no "{" before it; write "\\}" to match a literal "}"';
  }
  if (open < 0) return [text];
  const options: string[] = [];
  let depth = 0;
  let start = open + 1;
  let close = -1;
  for (let i = open; i < text.length && close < 0; i = skipAtom(text, i)) {
    if (text[i] === '{') depth++;
    else if (text[i] === '}' && --depth === 0) close = i;
    else if (text[i] === ',' && depth === 1) {
      options.push(text.slice(start, i));
      start = i + 1;
    }
  }
  if (close < 0) return 'a "{" is not closed; add "}", or write "\\{" to match a literal "{"';
  options.push(text.slice(start, close));
  if (options.length === 1)
    return 'braces must contain alternatives, as in {v4,v5}; write "\\{" to match a literal "{"';
  const expanded: string[] = [];
  for (const option of options) {
    const rest = expandBraces(text.slice(0, open) + option + text.slice(close + 1));
    if (typeof rest === 'string') return rest;
    expanded.push(...rest);
    if (expanded.length > MAX_ALTERNATIVES) {
      return `the braces expand to more than ${MAX_ALTERNATIVES} alternatives; write several rules`;
    }
  }
  return expanded;
}

function parseSegments(text: string): Segment[] | string {
  const segments: Segment[] = [];
  let tokens: Token[] = [];
  let i = 0;
  while (i <= text.length) {
    const char = text[i];
    if (char === undefined || char === '/') {
      const segment = finishSegment(tokens);
      if (typeof segment === 'string') return segment;
      // Repeated and trailing slashes are removed, as in paths.
      if (segment !== undefined) segments.push(segment);
      tokens = [];
      i++;
      continue;
    }
    const end = skipAtom(text, i);
    if (char === '\\') {
      const escaped = text[i + 1];
      if (escaped === undefined) return 'the pattern ends with "\\"; add the character to escape';
      tokens.push({ kind: 'char', unit: escaped.charCodeAt(0) });
    } else if (char === '[') {
      if (end > text.length) return 'a "[" is not closed; add "]", or write "\\[" to match a literal "["';
      const set = parseSet(text.slice(i + 1, end - 1));
      if (typeof set === 'string') return set;
      tokens.push(set);
    } else if (char === '*') tokens.push({ kind: 'star' });
    else if (char === '?') tokens.push({ kind: 'any' });
    else tokens.push({ kind: 'char', unit: char.charCodeAt(0) });
    i = end;
  }
  return segments;
}

/** Returns undefined for an empty segment, and a sentence for an invalid one. */
function finishSegment(tokens: readonly Token[]): Segment | string | undefined {
  if (tokens.length === 0) return undefined;
  const stars = tokens.filter((token) => token.kind === 'star').length;
  if (stars === tokens.length && stars === 2) return { kind: 'any' };
  if (tokens.some((token, i) => token.kind === 'star' && tokens[i + 1]?.kind === 'star')) {
    return '"**" must be a whole segment, as in "/open/**"; use "*" within a segment';
  }
  const literal = charsOf(tokens);
  if (literal.length === tokens.length) {
    if (literal === '.' || literal === '..') {
      return (
        `the segment "${literal}" never matches, because paths are resolved before they are matched; ` +
        'remove the segment'
      );
    }
    return { kind: 'literal', text: literal };
  }
  const head = literal;
  const tail = charsOf([...tokens].reverse())
    .split('')
    .reverse()
    .join('');
  if (stars === 1 && head.length + tail.length + 1 === tokens.length) {
    return { kind: 'star', prefix: head, suffix: tail };
  }
  return { kind: 'tokens', tokens, head, tail, minUnits: tokens.length - stars };
}

/** Returns the characters before the first special one. */
function charsOf(tokens: readonly Token[]): string {
  let text = '';
  for (const token of tokens) {
    if (token.kind !== 'char') break;
    text += String.fromCharCode(token.unit);
  }
  return text;
}

function parseSet(body: string): Token | string {
  const negated = body.startsWith('!') || body.startsWith('^');
  const chars: string[] = [];
  const dashes = new Set<number>();
  for (let i = negated ? 1 : 0; i < body.length; i++) {
    if (body[i] === '/') return 'a character set cannot contain "/", because "/" would never match';
    if (body[i] === '\\' && i + 1 < body.length) i++;
    else if (body[i] === '-') dashes.add(chars.length);
    chars.push(body[i] as string);
  }
  if (chars.length === 0)
    return 'a character set is empty; add characters, or write "\\[" to match a literal "["';
  const ranges: [number, number][] = [];
  for (let i = 0; i < chars.length; i++) {
    const low = chars[i] as string;
    const high = chars[i + 2];
    if (dashes.has(i + 1) && high !== undefined) {
      if (high < low) return `the range "${low}-${high}" is empty; swap its ends`;
      ranges.push([low.charCodeAt(0), high.charCodeAt(0)]);
      i += 2;
    } else {
      ranges.push([low.charCodeAt(0), low.charCodeAt(0)]);
    }
  }
  return { kind: 'set', negated, ranges };
}
