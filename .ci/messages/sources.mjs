// Selects the texts that people read.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { filesBelow } from '../shell.mjs';
import { textsOfCode, textsOfLines, textsOfPage } from './texts.mjs';

/** Folders with code that prints texts for people. */
const SPEAKING = ['.ci', 'deploy', 'src'];
/** The examples of the prose rules, which are wrong on purpose. */
const WRONG_EXAMPLES = '.ci/prose/rules/';

/** Tells whether a file contains texts for people, by its path. */
export const isSpeaking = (path) =>
  SPEAKING.some((folder) => path.startsWith(`${folder}/`)) && !path.startsWith(WRONG_EXAMPLES);

/** Strings that look like texts for people, and the reasons to exclude them. */
const NO_TEXTS = [
  [/redis\.call|^(?:GET|PING|CLIENT|SCRIPT|EVALSHA) [a-z]+:|^~\* ?weir/, 'Redis commands and scripts'],
  [/^HTTP\/1\.1 |^event: |^[a-z]+\/[a-z-]+; charset=/, 'parts of HTTP messages'],
  [/^\\n?#!\/|^#!\/|^<\?xml|^--[a-z-]+(?:=\S*)? \S+$|^env [A-Z_]+=/, 'programs, and options of commands'],
  [/^[|:]?[- |:]+$|^sum by \(/, 'lines of tables, and queries'],
  [/^[a-z -]+$/, 'names of classes', ({ use }) => use === 'class:' || use === 'className'],
];

/** Returns the files below `folders` whose paths match `ending`, in order. Folders that do not exist have none. */
export function filesEndingWith(ending, root, folders) {
  return folders
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) => [...filesBelow(folder, root)])
    .filter((path) => ending.test(path))
    .sort();
}

/** Returns the texts of a file, including texts that are not for people. */
export function textsOf(path, source) {
  if (path.endsWith('.html')) return textsOfPage(path, source);
  if (/\.(?:ya?ml|sh)$/.test(path)) return textsOfLines(path, source);
  return textsOfCode(path, source).texts;
}

/** Returns all texts below `root`, or of the given files and folders, including texts that are not for people. */
export function sourceTexts(root, parts = []) {
  const isAsked = (path) => parts.some((part) => `${path}/`.startsWith(`${part.replace(/\/$/, '')}/`));
  const paths = filesEndingWith(/\.(?:ts|mjs|cjs|html|ya?ml|sh)$/, root, SPEAKING).filter(isSpeaking);
  return (parts.length === 0 ? paths : paths.filter(isAsked)).flatMap((path) =>
    textsOf(path, readFileSync(join(root, path), 'utf8')),
  );
}

/** Tells whether people read a text: it has a word and a space before another word or a placeholder. */
export function isForPeople(text) {
  const { parts, use, shown } = text;
  if (use === 'key' || use === 'compared') return false;
  const words = parts.map((part) => (typeof part === 'string' ? part : 'Word')).join('');
  const isSentence = /[A-Za-z]{2,}\S*\s+\S*[A-Za-z]{2,}/.test(words) && /[a-z]{2,}/.test(words);
  return (
    isSentence && !NO_TEXTS.some(([pattern, , isMeant]) => pattern.test(shown) && (isMeant?.(text) ?? true))
  );
}
