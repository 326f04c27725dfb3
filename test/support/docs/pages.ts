import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { join, relative } from 'node:path';
import { repositoryRoot } from '../process/tools.js';

/** Pages of the manual, as paths from the root of the repository, sorted. */
export function manualPages(): string[] {
  const home = realpathSync(repositoryRoot);
  const below = (folder: string) =>
    readdirSync(join(repositoryRoot, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.md'))
      .map((entry) => relative(repositoryRoot, join(entry.parentPath, entry.name)))
      // Links to folders, whose pages are elsewhere, are followed by some versions of Node.js.
      .filter((path) => realpathSync(join(home, path)) === join(home, path))
      .filter((path) => !path.includes('node_modules'));
  const root = readdirSync(repositoryRoot).filter((path) => path.endsWith('.md'));
  return [...root, ...below('docs'), ...below('deploy')].sort();
}

/** The text of a page. */
export const pageText = (page: string): string => readFileSync(join(repositoryRoot, page), 'utf8');

/** The anchors that the headings of a page have on GitHub; a heading that stands twice gets a number. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, title = ''] of withoutBlocks(text).matchAll(/^#+ (.*)$/gm)) {
    const plain = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');
    const anchor = plain
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-');
    let unique = anchor;
    for (let again = 1; anchors.has(unique); again++) unique = `${anchor}-${again}`;
    anchors.add(unique);
  }
  return anchors;
}

/** The text with its fenced blocks emptied, every line in its place. */
export function withoutBlocks(text: string): string {
  let fenced = false;
  return text
    .split('\n')
    .map((line) => {
      const fence = line.trimStart().startsWith('```');
      const inside = fenced;
      if (fence) fenced = !fenced;
      return inside || fence ? '' : line;
    })
    .join('\n');
}
