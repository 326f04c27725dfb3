// Applies the rules to a file.
import { proseOfLua, proseOfScript } from './comments.mjs';
import { proseOfMarkdown } from './markdown.mjs';
import { messagesOf } from './messages.mjs';
import { RULES } from './rules.mjs';
import { sentencesOf } from './sentences.mjs';

export { RULES };

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
  const comments = /\.(?:ts|mjs|cjs)$/.test(path) ? proseOfScript(text) : [];
  return [...comments, ...messagesOf(path, text)];
}

/** Returns the example of a rule, with the same sentence in plain English. */
export function exampleOf(rule) {
  const { written, better } = RULES.find(({ name }) => name === rule);
  return `write "${better}", not "${written}"`;
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

/**
 * Returns what the rules find in a file: [{path, line, kind, rule, words}]. `exceptions` are {path, rule, words,
 * reason}; those that apply are marked as `used`.
 */
export function findingsIn(path, text, exceptions) {
  return proseOf(path, text)
    .flatMap(findingsInBlock)
    .filter(({ rule, words }) => {
      const exception = exceptions.find(
        (one) => one.path === path && one.rule === rule && words.includes(one.words),
      );
      if (exception !== undefined) exception.used = true;
      return exception === undefined;
    })
    .sort((a, b) => a.line - b.line)
    .map((finding) => ({ path, ...finding }));
}
