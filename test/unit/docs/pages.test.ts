/* What every page of the manual keeps: links that lead somewhere, and a length that can be read. */
import { existsSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { anchorsOf, manualPages, pageText, withoutBlocks } from '../../support/docs/pages.js';
import { repositoryRoot } from '../../support/process/tools.js';

const pages = manualPages();
const MAX_LINES = 400;
/** Most of these is printed from the source. */
const PRINTED = /^(?:docs\/reference\/.*|CHANGELOG)\.md$/;

/** Links of a page that lead nowhere, each with its line. */
function brokenLinks(page: string): string[] {
  const text = withoutBlocks(pageText(page)).replaceAll(/`[^`\n]*`/g, (code) => ' '.repeat(code.length));
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(({ 1: link = '', index }) => {
    if (/^(?:https?|mailto):/.test(link)) return [];
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? page : normalize(join(dirname(page), path));
    const there = existsSync(join(repositoryRoot, target));
    const anchored =
      anchor === undefined || (there && target.endsWith('.md') && anchorsOf(pageText(target)).has(anchor));
    return there && anchored ? [] : [`${page}:${text.slice(0, index).split('\n').length}: ${link}`];
  });
}

/** The text without what is printed from the source, every line in its place. */
const withoutPrinted = (text: string) =>
  text.replaceAll(/<!-- (\w+): printed by .*?<!-- \1 end -->/gs, (part) => part.replaceAll(/[^\n]/g, ''));

test('the manual has pages', () => expect(pages.length).toBeGreaterThan(20));

test('links of the manual lead to files and headings that are there', () => {
  expect(pages.flatMap(brokenLinks)).toEqual([]);
});

test('pages that people write have at most 400 lines, and README 250', () => {
  const long = pages.filter((page) => {
    const lines = pageText(page).split('\n').length - 1;
    return lines > (page === 'README.md' ? 250 : MAX_LINES) && !PRINTED.test(page);
  });
  expect(long).toEqual([]);
});

test('fences of code and the lines below the heads of tables stand on lines of their own', () => {
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

test('prose of the manual is wrapped at 120 characters', () => {
  const wide = pages
    .filter((page) => page !== 'CHANGELOG.md')
    .flatMap((page) =>
      withoutPrinted(withoutBlocks(pageText(page)))
        .split('\n')
        // Tables cannot be wrapped, nor can a line that is one link or one picture.
        .flatMap((line, at) =>
          line.length > 120 && !/^(?:\||<!--|!\[|\S+$)/.test(line)
            ? [`${page}:${at + 1}: ${line.length}`]
            : [],
        ),
    );
  expect(wide).toEqual([]);
});

describe('docs/README.md', () => {
  test('names every page of docs/', () => {
    const text = pageText('docs/README.md');
    const missing = pages.filter(
      (page) =>
        /^docs\/.*\/|^docs\/(?!README)/.test(page) && !text.includes(`](${page.slice('docs/'.length)})`),
    );
    expect(missing).toEqual([]);
  });

  test('is found from README.md', () => {
    expect(pageText('README.md')).toContain('](docs/README.md');
    expect(statSync(join(repositoryRoot, 'docs')).isDirectory()).toBe(true);
  });
});
