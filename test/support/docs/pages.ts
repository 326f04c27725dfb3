import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { join, relative } from 'node:path';
import { repositoryRoot } from '../process/tools.js';

/** Returns the pages of the manual as sorted paths, relative to the root of the repository. */
export function manualPages(): string[] {
  const home = realpathSync(repositoryRoot);
  const below = (folder: string) =>
    readdirSync(join(repositoryRoot, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.md'))
      .map((entry) => relative(repositoryRoot, join(entry.parentPath, entry.name)))
      // Some versions of Node.js follow links to folders, whose pages are listed elsewhere.
      .filter((path) => realpathSync(join(home, path)) === join(home, path))
      .filter((path) => !path.includes('node_modules'));
  const root = readdirSync(repositoryRoot).filter((path) => path.endsWith('.md'));
  return [...root, ...below('docs'), ...below('deploy')].sort();
}

/** Returns the text of a page. */
export const pageText = (page: string): string => readFileSync(join(repositoryRoot, page), 'utf8');

/** Returns the anchors of a page's headings on GitHub; a repeated heading gets a number. */
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

/** Returns the text with empty fenced blocks; line numbers do not change. */
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
