// Applies the rules to a file.
import { readFileSync } from 'node:fs';
import { proseOfLua, proseOfScript } from './code.mjs';
import { proseOfMarkdown } from './markdown.mjs';
import { RULES } from './rules.mjs';
import { sentencesOf } from './sentences.mjs';

export { RULES };

/** [{path, rule, words, reason}]: sentences that a rule must not flag. */
const EXCEPTIONS = JSON.parse(readFileSync(new URL('./exceptions.json', import.meta.url), 'utf8'));

/** Keeps the newest section of a changelog, and the line numbers. */
function newestSection(text) {
  const second = [...text.matchAll(/^## /gm)][1]?.index;
  return second === undefined ? text : text.slice(0, second);
}

/** Returns the blocks of prose in a file, by its name: [{line, text, kind, part, first}]. */
export function proseOf(path, text) {
  if (path === 'CHANGELOG.md') return proseOfMarkdown(newestSection(text));
  if (path.endsWith('.md')) return proseOfMarkdown(text);
  if (path.endsWith('.lua')) return proseOfLua(text);
  // The place to take the messages from `npm run messages`, once that lists them.
  return proseOfScript(text, { messages: path.startsWith('src/') });
}

/** Returns the example of a rule: a sentence that it flags, and the same sentence in plain English. */
export function exampleOf(rule) {
  const { written, better } = RULES.find(({ name }) => name === rule);
  return `not "${written}" but "${better}"`;
}

/** Returns what the rules find in a block: [{line, kind, rule, words}]. */
export function findingsInBlock(block) {
  const found = [];
  for (const sentence of sentencesOf(block)) {
    const about = {
      ...sentence,
      kind: block.kind,
      part: block.part,
      first: sentence.first && block.first === true,
    };
    for (const { name, find } of RULES) {
      const words = find(about);
      if (words !== null) found.push({ line: sentence.line, kind: block.kind, rule: name, words });
    }
  }
  return found;
}

/** Returns what the rules find in a file: [{path, line, kind, rule, words}]. */
export function findingsIn(path, text) {
  return proseOf(path, text)
    .flatMap(findingsInBlock)
    .filter(
      ({ rule, words }) =>
        !EXCEPTIONS.some((one) => one.path === path && one.rule === rule && words.includes(one.words)),
    )
    .sort((a, b) => a.line - b.line)
    .map((finding) => ({ path, ...finding }));
}
