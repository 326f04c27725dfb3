// Replaces texts by a table, in the source and in the tests and pages that quote them.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  longestOf,
  partsOfPattern,
  patternOf,
  patternOfParts,
  quoteOf,
  renaming,
  replaceWhole,
  withHoles,
  withoutHoles,
} from './quotes.mjs';
import { filesEndingWith, isForPeople, sourceTexts } from './sources.mjs';
import { partsOfLine, shown, textsOfCode } from './texts.mjs';
import { withEdits } from './write.mjs';

const CODE = /\.(?:ts|mjs|cjs)$/;
/** The formatter does not break strings; `npm run lint` rejects longer lines. */
const MAX_COLUMNS = 120;
const BROKEN_COLUMNS = 110;
/** Minimum number of words of a text that is replaced in prose. */
const WORDS_IN_PROSE = 4;

/** Tests with example texts, which are not quotes. */
const OWN_TEXTS = /messages\.test\.ts$|prose\.test\.ts$/;
/** Functions whose first argument names a test or a condition. */
const NAMES = new Set(['test', 'describe', 'it', 'waitFor']);
/** Minimum number of words of a text that is replaced inside another text. */
const WORDS_INSIDE = 3;

/** Parses lines `old<TAB>new`; skips empty lines and comments (#). */
export function readTable(text) {
  const rows = text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'));
  return rows.map((line) => line.split('\t'));
}

/** Changes the files below `root`. `format` formats files. Returns {places, files, complaints}. */
export function rename(root, table, format) {
  const texts = sourceTexts(root);
  const complaints = [];
  const replacements = replacementsOf(table, texts, complaints);
  const named = new Set(table.map(([from]) => from));
  const kept = texts.filter((text) => !named.has(text.shown) && isForPeople(text));
  const renamings = renamingsOf(replacements, kept);
  const edits = new Map();
  const add = (path, edit) => edits.set(path, [...(edits.get(path) ?? []), edit]);
  for (const { text, parts } of replacements)
    add(text.path, text.use === 'plain' ? { text, plain: parts.join('') } : { text, parts });
  for (const [path, edit] of quotesInTests(root, renamings, kept, complaints)) add(path, edit);
  writeCode(root, edits, format);
  const pages = renameProse(root, renamings);
  const places = [...edits.values()].reduce((sum, list) => sum + list.length, pages.length);
  return { places, files: new Set([...edits.keys(), ...pages]).size, complaints };
}

/** Returns {text, parts} for each text that the table changes; `parts` are the parts of the new text. */
function replacementsOf(table, texts, complaints) {
  const byText = new Map();
  for (const text of texts) byText.set(text.shown, [...(byText.get(text.shown) ?? []), text]);
  const seen = new Map();
  const replacements = [];
  for (const [from, to, ...rest] of table) {
    if (to === undefined || rest.length > 0) complaints.push(`the line does not have two columns: ${from}`);
    else if (seen.has(from) && seen.get(from) !== to)
      complaints.push(`the text has two different replacements: ${from}`);
    else if (!byText.has(from)) complaints.push(`not found: ${from}`);
    else if (from !== to && !seen.has(from)) {
      for (const text of byText.get(from)) {
        const placeholders = text.parts.filter((part) => typeof part !== 'string');
        const parts = partsOfLine(to, placeholders);
        for (const complaint of placeholderComplaints(from, to, placeholders, parts))
          complaints.push(`${text.path}:${text.line}: ${complaint}: ${to}`);
        replacements.push({ text, parts });
      }
    }
    seen.set(from, to);
  }
  return replacements;
}

/** Compares the placeholders of an old and a new text. Returns descriptions of the differences. */
function placeholderComplaints(from, to, placeholders, parts) {
  const literal = shown(parts.filter((part) => typeof part === 'string'));
  const unknown = (literal.match(/\{[a-z][A-Za-z\d]*\}/g) ?? []).filter((name) => !from.includes(name));
  const missing = placeholders.map(({ name }) => `{${name}}`).filter((name) => !to.includes(name));
  return [
    ...unknown.map((name) => `unknown placeholder ${name}`),
    ...missing.map((name) => `placeholder ${name} is missing`),
  ];
}

/** Returns a renaming for each changed text, the longest first. `keepers` find longer texts that do not change. */
function renamingsOf(replacements, kept) {
  const byOld = new Map(replacements.toReversed().map((one) => [one.text.shown, one]));
  return [...byOld]
    .toSorted(([a], [b]) => b.length - a.length)
    .map(([old, { text, parts }]) => {
      const one = renaming(text.parts, parts);
      const keepers = kept
        .filter((keeper) => keeper.shown !== old && keeper.shown.includes(one.longest))
        .map((keeper) => patternOf(keeper.parts).pattern);
      return { ...one, old, keepers };
    });
}

/** Writes the edits of source files and tests, formats the files, and breaks lines that are too wide. */
function writeCode(root, edits, format) {
  for (const [path, list] of edits) {
    const source = readFileSync(join(root, path), 'utf8');
    writeFileSync(join(root, path), withEdits(source, list));
  }
  const code = [...edits.keys()].filter((path) => CODE.test(path));
  format(code);
  for (const path of code) breakLines(root, path, edits.get(path));
  format(code);
}

/** Breaks the texts of `edits` that make a line too wide. */
function breakLines(root, path, edits) {
  const source = readFileSync(join(root, path), 'utf8');
  const lines = source.split('\n');
  const written = new Set(edits.filter(({ parts }) => parts).map(({ parts }) => shown(parts)));
  const wide = textsOfCode(path, source).texts.filter((text) => {
    if (!written.has(text.shown) || (/\n/.test(source.slice(text.start, text.end)) && text.isOneTemplate))
      return false;
    const last = source.slice(0, text.end).split('\n').length;
    return lines.slice(text.line - 1, last).some((line) => line.length > MAX_COLUMNS);
  });
  if (wide.length === 0) return;
  const list = wide.map((text) => {
    const indent = /^ */.exec(lines[text.line - 1])[0].length;
    return { text, parts: text.parts, width: BROKEN_COLUMNS - indent - 5 };
  });
  writeFileSync(join(root, path), withEdits(source, list));
}

/** Returns edits for the texts and regular expressions in tests that quote old texts. */
function quotesInTests(root, renamings, kept, complaints) {
  const code = [];
  for (const path of filesEndingWith(CODE, root, ['test']).filter((one) => !OWN_TEXTS.test(one))) {
    const source = readFileSync(join(root, path), 'utf8');
    const { texts, regexps } = textsOfCode(path, source);
    const say = (place, { quote }, { old }) =>
      complaints.push(`${path}:${place.line}: cannot rewrite the quote "${quote}" from: ${old}`);
    for (const text of texts) {
      if (NAMES.has(text.use) || (text.use === 'key' && !text.shown.includes(' '))) continue;
      const now = requoted(withHoles(text.parts), renamings, kept, (...what) => say(text, ...what));
      if (now !== undefined) code.push([path, { text, parts: withoutHoles(now, text.parts) }]);
    }
    for (const regexp of regexps) {
      const parts = partsOfPattern(regexp.pattern);
      const now = requoted(withHoles(parts), renamings, kept, (...what) => say(regexp, ...what));
      if (now === undefined) continue;
      const flags = source.slice(regexp.start + regexp.pattern.length + 2, regexp.end);
      code.push([path, { text: regexp, plain: `/${patternOfParts(withoutHoles(now, parts))}/${flags}` }]);
    }
  }
  return code;
}

/** Replaces texts in the manual and in data files of tests. Returns the paths of the changed files. */
function renameProse(root, renamings) {
  const paths = [
    ...filesEndingWith(/\.(?:md|ya?ml|sh)$/, root, ['docs', 'deploy']),
    ...filesEndingWith(/\.(?:txt|json|ya?ml)$/, root, ['test']),
    ...(existsSync(join(root, 'README.md')) ? ['README.md'] : []),
  ];
  const sure = renamings.filter(({ count }) => count >= WORDS_IN_PROSE);
  return paths.filter((path) => {
    if (path.startsWith('docs/reference/')) return false; // printed by `npm run docs`
    const before = readFileSync(join(root, path), 'utf8');
    const after = sure.reduce((text, one) => replaceWhole(text, one, true), before);
    if (after !== before) writeFileSync(join(root, path), after);
    return after !== before;
  });
}

/** Returns `text` with its quotes rewritten, or undefined if nothing changes. */
function requoted(text, renamings, kept, say) {
  if (!/[A-Za-z]{2,}/.test(text)) return undefined;
  let now = text;
  for (const one of renamings) {
    if (!now.includes(one.longest)) continue;
    const isShort = one.count < WORDS_INSIDE;
    if (isShort && now !== withHoles(one.parts)) continue;
    const longer = one.keepers.some((pattern) => now.search(pattern) >= 0);
    if (!longer) now = replaceWhole(now, one);
  }
  if (now !== text) return now;
  if (!/\s/.test(text)) return undefined;
  for (const one of renamings) {
    if (!sharesWords(text, one)) continue;
    const quote = quoteOf(text, one);
    if (quote === undefined) continue;
    const keepers = kept.filter(({ shown: keptText }) => keptText.includes(quote.quote));
    if (keepers.some((keeper) => text.includes(longestOf(keeper.parts)))) continue;
    if (quote.text === undefined || keepers.length > 0) say(quote, one);
    else return quote.text;
  }
  return undefined;
}

/** Tells whether two adjacent words match, which is much cheaper than {@link quoteOf}. */
function sharesWords(text, one) {
  one.pairs ??= one.words
    .slice(1)
    .map((word, index) => `${one.words[index]} ${word.replace(/[.,;:]+$/, '')}`);
  return one.pairs.some((pair) => text.includes(pair));
}
