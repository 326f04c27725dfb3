// Finds quotes of renamed texts in other texts, whole or in part, and rewrites them. Each text is a string in which one
// character of {@link HOLES} represents each placeholder.

const FIRST_HOLE = 0xe000;
export const HOLES = /[\ue000-\uf8ff]/;
const LONGEST_VALUE = 300;
/** Minimum number of words that make a part of a text a quote. */
const FEWEST_WORDS = 4;

export const withHoles = (parts) =>
  parts
    .map((part, index) => (typeof part === 'string' ? part : String.fromCharCode(FIRST_HOLE + index)))
    .join('');

/** Returns the parts of a text with holes; `parts` contains the placeholders. */
export function withoutHoles(text, parts) {
  return text
    .split(/([\ue000-\uf8ff])/)
    .filter((piece) => piece !== '')
    .map((piece) => (HOLES.test(piece) ? parts[piece.charCodeAt(0) - FIRST_HOLE] : piece));
}

const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
const strings = (parts) => parts.filter((part) => typeof part === 'string');
/** Returns the longest string between placeholders. */
export const longestOf = (parts) =>
  strings(parts)
    .reduce((a, b) => (b.length > a.length ? b : a), '')
    .trim();

/** Prepares one renaming for the search for quotes. */
export function renaming(oldParts, newParts) {
  let [from, to] = [[...oldParts], [...newParts]];
  const isSame = (a, b) => a !== undefined && typeof a !== 'string' && a.name === b?.name;
  // A placeholder at the end of both texts does not have to be found.
  while (isSame(from[0], to[0])) [from, to] = [from.slice(1), to.slice(1)];
  while (isSame(from.at(-1), to.at(-1))) [from, to] = [from.slice(0, -1), to.slice(0, -1)];
  return {
    parts: oldParts,
    from,
    to,
    longest: longestOf(from),
    words: wordsOf(oldParts),
    count: wordsOf(strings(oldParts)).filter((word) => /[a-z]/i.test(word)).length,
    newWords: wordsOf(newParts),
  };
}

/** Returns a regular expression with a group for each placeholder. With `isProse`, a line may break at any space. */
export function patternOf(parts, isProse = false) {
  const seen = new Map();
  const source = parts.map((part, index) => {
    if (typeof part === 'string')
      return isProse ? escaped(part).replace(/(?<=\S) (?=\S)/g, '\\s+') : escaped(part);
    if (seen.has(part.name)) return `\\${seen.get(part.name)}`;
    seen.set(part.name, seen.size + 1);
    const isEdge = index === 0 || index === parts.length - 1;
    return isEdge ? '("[^"\\n]*"|[^\\s:;,]+)' : `(.{0,${LONGEST_VALUE}}?)`;
  });
  const [first, last] = [parts[0], parts.at(-1)];
  const before = /^\w/.test(first) ? '(?<!\\w)' : '';
  const after = /\w$/.test(last) ? '(?!\\w)' : '';
  return { pattern: new RegExp(before + source.join('') + after, 'g'), names: [...seen.keys()] };
}

/** Replaces each complete old text in `text` by the new one. */
export function replaceWhole(text, { from, to, longest }, isProse = false) {
  if (from.length === 0 || longest === '' || !(isProse ? text.replace(/\s+/g, ' ') : text).includes(longest))
    return text;
  const { pattern, names } = patternOf(from, isProse);
  return text.replace(pattern, (...groups) => {
    const value = (name) => groups[names.indexOf(name) + 1];
    return to.map((part) => (typeof part === 'string' ? part : value(part.name))).join('');
  });
}

/** Splits a text into words; a word with a placeholder is a pattern. */
function wordsOf(parts) {
  return withHoles(parts)
    .split(/\s+/)
    .filter((word) => word !== '');
}

const bare = (word) => word.replace(/[.,;:]+$/, '');
const isSameWord = (a, b) => bare(a) === bare(b);

function isWordOf(word, old) {
  if (!HOLES.test(old)) return isSameWord(word, old);
  const pattern = bare(old).split(HOLES).map(escaped).join('.+');
  return new RegExp(`^${pattern}$`, 'u').test(bare(word));
}

/** Finds the longest run of words that `words` and `old` share: {at, from, length}. */
function longestRun(words, old) {
  let best = { at: 0, from: 0, length: 0 };
  let previous = [];
  for (let at = 0; at < words.length; at++) {
    const row = [];
    for (let from = 0; from < old.length; from++) {
      row[from] = isWordOf(words[at], old[from]) ? (previous[from - 1] ?? 0) + 1 : 0;
      if (row[from] > best.length)
        best = { at: at - row[from] + 1, from: from - row[from] + 1, length: row[from] };
    }
    previous = row;
  }
  return best;
}

/** Maps each word of `a` to its word in `b`, by the longest common subsequence. */
function alignment(a, b) {
  const lengths = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i][j] = isSameWord(a[i], b[j])
        ? lengths[i + 1][j + 1] + 1
        : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const pairs = [];
  for (let [i, j] = [0, 0]; i < a.length && j < b.length; ) {
    if (isSameWord(a[i], b[j])) pairs[i++] = j++;
    else if (lengths[i + 1][j] >= lengths[i][j + 1]) i++;
    else j++;
  }
  return pairs;
}

/** Maps a position in the old words to the position in the new words; undefined if that is not clear. */
function mappedCut(cut, { words, newWords }, pairs) {
  if (cut === 0) return 0;
  if (cut === words.length) return newWords.length;
  return pairs[cut - 1] !== undefined ? pairs[cut - 1] + 1 : pairs[cut];
}

/**
 * Finds a part of an old text that `text` quotes. Returns undefined without a quote, otherwise {quote, text}: `text`
 * quotes the new text instead, or is undefined if the matching part of the new text is not clear.
 */
export function quoteOf(text, renamed) {
  const words = text.split(/\s+/).filter((word) => word !== '');
  const { at, from, length } = longestRun(words, renamed.words);
  const run = words.slice(at, at + length);
  const isAll = length === words.length && length > 1;
  const same = run.filter((word, index) => /[a-z]/i.test(word) && !HOLES.test(renamed.words[from + index]));
  if (same.length < (isAll ? FEWEST_WORDS - 1 : FEWEST_WORDS)) return undefined;
  const quote = bare(run.join(' '));
  if (renamed.newWords.map(bare).join(' ').includes(run.map(bare).join(' '))) return undefined;
  const isCutShort =
    (at === 0 || from === 0) && (at + length === words.length || from + length === renamed.words.length);
  const pairs = alignment(renamed.words, renamed.newWords);
  const [start, end] = [mappedCut(from, renamed, pairs), mappedCut(from + length, renamed, pairs)];
  const now = renamed.newWords.slice(start, end);
  const whole = new RegExp(run.map(escaped).join('\\s+'), 'g');
  const isClear = isCutShort && start !== undefined && end > start && text.match(whole)?.length === 1;
  if (!isClear || now.some((word) => HOLES.test(word))) return { quote };
  // The last word keeps its punctuation only if the old last word had some.
  const ends = /[.,;:]$/.test(run.at(-1)) ? now.at(-1) : bare(now.at(-1));
  return { quote, text: text.replace(whole, () => [...now.slice(0, -1), ends].join(' ')) };
}

const REGEXP_ATOM =
  /\\[dDwWsSbBnrtfv0]|\\u\{?[\da-fA-F]+\}?|\\x[\da-f]{2}|\\p\{\w+\}|\\k<\w+>|\\[1-9]|\[(?:\\.|[^\]\\])*\]|\((?:\?(?:[:=!]|<[=!]|<\w+>))?|[)|^$.]|(?:\\.|[^\\])(?=[*+?]|\{\d)|[*+?]\??|\{\d[\d,]*\}\??/y;

/** Splits a regular expression into literal strings and the source of everything else. */
export function partsOfPattern(pattern) {
  const parts = [];
  const push = (kind, text) => {
    const last = parts.at(-1);
    if (kind === 'text' && typeof last === 'string') parts[parts.length - 1] += text;
    else if (kind === 'text') parts.push(text);
    else if (last !== undefined && typeof last !== 'string') last.source += text;
    else parts.push({ source: text });
  };
  for (let at = 0; at < pattern.length; ) {
    REGEXP_ATOM.lastIndex = at;
    const [atom] = REGEXP_ATOM.exec(pattern) ?? [];
    if (atom !== undefined) push('atom', atom);
    else if (pattern[at] === '\\') push('text', pattern[at + 1]);
    else push('text', pattern[at]);
    at += atom?.length ?? (pattern[at] === '\\' ? 2 : 1);
  }
  return parts;
}

export function patternOfParts(parts) {
  return parts
    .map((part) => (typeof part === 'string' ? escaped(part).replaceAll('/', '\\/') : part.source))
    .join('');
}
