/*
 * Path patterns of `derive`: `*` any characters of one segment, `?` one character of it, `[a-z]` and `[!a-z]` one of a
 * set, `{v4,v5}` alternatives, `**` (a segment of its own) any number of segments, none included, `\` takes the meaning
 * from the next character. Names that begin with a dot are nothing special, and a line break is a character like any
 * other.
 *
 * Patterns are matched against paths that callers choose, so no regular expressions: matching walks segments and
 * characters with one point to return to (the last star), which is enough for stars and takes at most |pattern| ×
 * |path| steps.
 */

/** One character of a segment's pattern. */
type Token =
  | { readonly kind: 'char'; readonly text: string }
  | { readonly kind: 'any' }
  | { readonly kind: 'star' }
  | {
      readonly kind: 'set';
      readonly negated: boolean;
      readonly ranges: readonly (readonly [string, string])[];
    };

/** `**`, or the tokens of one segment; a segment without special characters is its text. */
type Segment = '**' | { readonly literal: string } | { readonly tokens: readonly Token[] };

/**
 * What path patterns are defined as: each by itself, walked over the segments of the whole path. What the matching of
 * all together is held against.
 */

/** Most alternatives that the braces of one pattern may expand to. */
const MAX_ALTERNATIVES = 256;
/** Longest pattern, in characters. */
const MAX_PATTERN_LENGTH = 1024;

/** A compiled path pattern. Plain paths and `/plain/**`, which most are, take no walk. */
export class DefinedPathPattern {
  readonly source: string;
  /** Alternatives without any special character. */
  private readonly paths = new Set<string>();
  /** Alternatives that are plain but for a `**` at their end, without it: `/open`. */
  private readonly prefixes: string[] = [];
  private readonly alternatives: (readonly Segment[])[] = [];

  private constructor(source: string, alternatives: readonly (readonly Segment[])[]) {
    this.source = source;
    for (const segments of alternatives) {
      const open = segments.at(-1) === '**';
      const plain = plainPath(open ? segments.slice(0, -1) : segments);
      if (plain === undefined) this.alternatives.push(segments);
      else if (open) this.prefixes.push(plain);
      else this.paths.add(plain === '' ? '/' : plain);
    }
  }

  /** Compiles a pattern, or returns the sentence that says why it is none. */
  static parse(source: string): DefinedPathPattern | string {
    if (!source.startsWith('/')) return 'a path pattern begins with "/"';
    if (source.length > MAX_PATTERN_LENGTH)
      return `a path pattern has at most ${MAX_PATTERN_LENGTH} characters`;
    const texts = expandBraces(source);
    if (typeof texts === 'string') return texts;
    const alternatives: Segment[][] = [];
    for (const text of texts) {
      const segments = parseSegments(text);
      if (typeof segments === 'string') return segments;
      alternatives.push(segments);
    }
    return new DefinedPathPattern(source, alternatives);
  }

  /** Whether a path, as `normalisePath` gives it, matches as a whole. */
  matches(path: string): boolean {
    if (this.paths.has(path)) return true;
    for (let i = 0; i < this.prefixes.length; i++) {
      const prefix = this.prefixes[i] as string;
      if (path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === '/'))
        return true;
    }
    if (this.alternatives.length === 0) return false;
    const segments = path === '/' ? [] : path.slice(1).split('/');
    return this.alternatives.some((alternative) => matchSegments(alternative, segments));
  }
}

/** `/a/b` for segments that are nothing but texts, '' for none of them; undefined for others. */
function plainPath(segments: readonly Segment[]): string | undefined {
  let path = '';
  for (const segment of segments) {
    if (segment === '**' || !('literal' in segment)) return undefined;
    path += `/${segment.literal}`;
  }
  return path;
}

/** Steps over a `[…]` set or an escaped character at `i`, so that braces and slashes in it are not seen. */
function skipAtom(text: string, i: number): number {
  if (text[i] === '\\') return i + 2;
  if (text[i] !== '[') return i + 1;
  let end = i + 1;
  if (text[end] === '!' || text[end] === '^') end++;
  // A `]` that comes first stands for itself.
  if (text[end] === ']') end++;
  while (end < text.length && text[end] !== ']') end += text[end] === '\\' ? 2 : 1;
  return end + 1;
}

/**
 * All texts that `{a,b}` stands for; braces nest. Returns a sentence when a brace is not closed, or they are too many.
 */
function expandBraces(text: string): string[] | string {
  let open = -1;
  for (let i = 0; i < text.length && open < 0; i = skipAtom(text, i)) {
    if (text[i] === '{') open = i;
    else if (text[i] === '}') return 'a "}" has no "{" before it; write "\\}" for the character';
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
  if (close < 0) return 'a "{" is not closed; add "}", or write "\\{" for the character';
  options.push(text.slice(start, close));
  if (options.length === 1) return 'braces hold alternatives, as in {v4,v5}; write "\\{" for the character';
  const expanded: string[] = [];
  for (const option of options) {
    const rest = expandBraces(text.slice(0, open) + option + text.slice(close + 1));
    if (typeof rest === 'string') return rest;
    expanded.push(...rest);
    if (expanded.length > MAX_ALTERNATIVES) {
      return `the braces stand for more than ${MAX_ALTERNATIVES} alternatives; write several rules`;
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
      if (typeof segment === 'string' && segment !== '**') return segment;
      // Repeated and trailing slashes are dropped, as they are in paths.
      if (segment !== undefined) segments.push(segment as Segment);
      tokens = [];
      i++;
      continue;
    }
    const end = skipAtom(text, i);
    if (char === '\\') {
      const escaped = text[i + 1];
      if (escaped === undefined) return 'the pattern ends with "\\"; add the character it stands before';
      tokens.push({ kind: 'char', text: escaped });
    } else if (char === '[') {
      if (end > text.length) return 'a "[" is not closed; add "]", or write "\\[" for the character';
      const set = parseSet(text.slice(i + 1, end - 1));
      if (typeof set === 'string') return set;
      tokens.push(set);
    } else if (char === '*') tokens.push({ kind: 'star' });
    else if (char === '?') tokens.push({ kind: 'any' });
    else tokens.push({ kind: 'char', text: char });
    i = end;
  }
  return segments;
}

/** Undefined for an empty segment; a sentence for a bad one. */
function finishSegment(tokens: readonly Token[]): Segment | string | undefined {
  if (tokens.length === 0) return undefined;
  const stars = tokens.filter((token) => token.kind === 'star').length;
  if (stars === tokens.length && stars === 2) return '**';
  if (tokens.some((token, i) => token.kind === 'star' && tokens[i + 1]?.kind === 'star')) {
    return '"**" must be a whole segment, as in "/open/**"; use "*" within a segment';
  }
  if (tokens.every((token) => token.kind === 'char')) {
    const literal = tokens.map((token) => (token.kind === 'char' ? token.text : '')).join('');
    if (literal === '.' || literal === '..') {
      return `the segment "${literal}" matches no path, as paths are resolved first; remove it`;
    }
    return { literal };
  }
  return { tokens };
}

function parseSet(body: string): Token | string {
  const negated = body.startsWith('!') || body.startsWith('^');
  const chars: string[] = [];
  const dashes = new Set<number>();
  for (let i = negated ? 1 : 0; i < body.length; i++) {
    if (body[i] === '/') return 'a set of characters cannot hold "/"; it would never match';
    if (body[i] === '\\' && i + 1 < body.length) i++;
    else if (body[i] === '-') dashes.add(chars.length);
    chars.push(body[i] as string);
  }
  if (chars.length === 0) return 'a set of characters is empty; write "\\[" for the character';
  const ranges: [string, string][] = [];
  for (let i = 0; i < chars.length; i++) {
    const low = chars[i] as string;
    const high = chars[i + 2];
    if (dashes.has(i + 1) && high !== undefined) {
      if (high < low) return `the range "${low}-${high}" is empty; turn it round`;
      ranges.push([low, high]);
      i += 2;
    } else {
      ranges.push([low, low]);
    }
  }
  return { kind: 'set', negated, ranges };
}

/** `**` over segments works as `*` over characters: return to the last one and let it take one more. */
function matchSegments(pattern: readonly Segment[], path: readonly string[]): boolean {
  let p = 0;
  let s = 0;
  let starP = -1;
  let starS = 0;
  while (s < path.length) {
    const segment = pattern[p];
    if (segment === '**') {
      starP = p++;
      starS = s;
    } else if (segment !== undefined && matchSegment(segment, path[s] as string)) {
      p++;
      s++;
    } else if (starP >= 0) {
      p = starP + 1;
      s = ++starS;
    } else {
      return false;
    }
  }
  while (pattern[p] === '**') p++;
  return p === pattern.length;
}

function matchSegment(segment: Exclude<Segment, '**'>, text: string): boolean {
  if ('literal' in segment) return segment.literal === text;
  const { tokens } = segment;
  let t = 0;
  let i = 0;
  let starT = -1;
  let starI = 0;
  while (i < text.length) {
    const token = tokens[t];
    if (token !== undefined && token.kind === 'star') {
      starT = t++;
      starI = i;
      continue;
    }
    const width = token === undefined ? 0 : matchToken(token, text, i);
    if (width > 0) {
      t++;
      i += width;
    } else if (starT >= 0) {
      t = starT + 1;
      i = ++starI;
    } else {
      return false;
    }
  }
  while (tokens[t]?.kind === 'star') t++;
  return t === tokens.length;
}

/** How many characters a token takes at `i`, 0 if it does not match. */
function matchToken(token: Token, text: string, i: number): number {
  switch (token.kind) {
    case 'char':
      return text[i] === token.text ? 1 : 0;
    case 'any':
      return characterWidth(text, i);
    case 'set': {
      const char = text[i] as string;
      const inside = token.ranges.some(([low, high]) => char >= low && char <= high);
      if (inside === token.negated) return 0;
      return token.negated ? characterWidth(text, i) : 1;
    }
    case 'star':
      return 0;
  }
}

/** UTF-16 units of the character at `i`: two for those beyond U+FFFF. */
function characterWidth(text: string, i: number): number {
  return (text.codePointAt(i) as number) > 0xffff ? 2 : 1;
}
