/* Checks every page of the manual: its links and its line width. */
import { existsSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { anchorsOf, manualPages, pageText, withoutBlocks } from '../../support/docs/pages.js';
import { repositoryRoot } from '../../support/process/tools.js';

const pages = manualPages();

/** Removes the changes of the first edition, whose links lead to pages of that commit. */
const withoutFirstEdition = (text: string) => text.split(/^## The first edition$/m)[0] as string;

/** Returns the broken links of a page, each with its line number. */
function brokenLinks(page: string): string[] {
  const text = withoutBlocks(withoutFirstEdition(pageText(page))).replaceAll(/`[^`\n]*`/g, (code) =>
    ' '.repeat(code.length),
  );
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(({ 1: link = '', index }) => {
    if (/^(?:https?|mailto):/.test(link)) return [];
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? page : normalize(join(dirname(page), path));
    const exists = existsSync(join(repositoryRoot, target));
    const hasAnchor =
      anchor === undefined || (exists && target.endsWith('.md') && anchorsOf(pageText(target)).has(anchor));
    return exists && hasAnchor ? [] : [`${page}:${text.slice(0, index).split('\n').length}: ${link}`];
  });
}

/** Removes the generated parts of a page, but keeps the line numbers. */
const withoutGenerated = (text: string) =>
  text.replaceAll(/<!-- (\w+): printed by .*?<!-- \1 end -->/gs, (part) => part.replaceAll(/[^\n]/g, ''));

test('the manual has pages', () => expect(pages.length).toBeGreaterThan(20));

test('links lead to existing files and headings', () => {
  expect(pages.flatMap(brokenLinks)).toEqual([]);
});

test('code fences and the delimiter rows of tables are on separate lines', () => {
  const joined = pages.flatMap((page) =>
    pageText(page)
      .split('\n')
      .flatMap((line, at) =>
        (line.includes('```') && !/^ *(?:> *)?```\w*$/.test(line)) || /[^|\s:-].*\| *:?-{3,}/.test(line)
          ? [`${page}:${at + 1}: ${line}`]
          : [],
      ),
  );
  expect(joined).toEqual([]);
});

test('prose is wrapped at 120 characters', () => {
  const wide = pages
    .filter((page) => page !== 'CHANGELOG.md')
    .flatMap((page) =>
      withoutGenerated(withoutBlocks(pageText(page)))
        .split('\n')
        // Tables, and lines that consist of one link or one picture, cannot be wrapped.
        .flatMap((line, at) =>
          line.length > 120 && !/^(?:\||<!--|!\[|\S+$)/.test(line)
            ? [`${page}:${at + 1}: ${line.length}`]
            : [],
        ),
    );
  expect(wide).toEqual([]);
});

describe('docs/README.md', () => {
  test('links to every page below docs/', () => {
    const text = pageText('docs/README.md');
    const missing = pages.filter(
      (page) =>
        /^docs\/.*\/|^docs\/(?!README)/.test(page) && !text.includes(`](${page.slice('docs/'.length)})`),
    );
    expect(missing).toEqual([]);
  });

  test('is linked in README.md', () => {
    expect(pageText('README.md')).toContain('](docs/README.md');
    expect(statSync(join(repositoryRoot, 'docs')).isDirectory()).toBe(true);
  });
});
