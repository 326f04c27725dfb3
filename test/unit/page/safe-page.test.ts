/*
 * Patterns that must not occur in the source of the page, so that names cannot become markup, and the content security
 * policy is not violated.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { repositoryRoot } from '../../support/process/tools.js';

const ROOM = join(repositoryRoot, 'src/page');
const files = readdirSync(ROOM, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name));

const found = (ending: RegExp, pattern: RegExp): string[] =>
  files
    .filter((file) => ending.test(file))
    .flatMap((file) =>
      readFileSync(file, 'utf8')
        .split('\n')
        .flatMap((line, at) =>
          pattern.test(line) ? [`${file.slice(ROOM.length + 1)}:${at + 1}: ${line.trim()}`] : [],
        ),
    );

test('texts never become markup or code', () => {
  expect(files.length).toBeGreaterThan(20);
  const markup =
    /innerHTML|InnerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser/;
  expect(found(/\.tsx?$/, markup)).toEqual([]);
  expect(found(/\.tsx?$/, /\beval\b|new Function\b|setTimeout\(\s*['"`]|javascript:|\.style\b/)).toEqual([]);
});

test('the document contains nothing that its content security policy forbids', () => {
  expect(found(/\.html$/, /\sstyle=|\son[a-z]+=|<iframe|<base|<object|<embed/)).toEqual([]);
  // The server inserts exactly one style and one script.
  const page = readFileSync(join(ROOM, 'page.html'), 'utf8');
  expect(page.match(/<style/g)).toHaveLength(1);
  expect(page.match(/<script/g)).toHaveLength(1);
  expect(page).toContain('<style></style>');
  expect(page).toContain('<script type="module"></script>');
});

test('the page loads nothing from other servers', () => {
  expect(found(/\.(html|css)$/, /https?:(?!\/\/www\.w3\.org\/2000\/svg)|@import|url\(/)).toEqual([]);
  expect(found(/\.tsx?$/, /https?:\/\/(?!www\.w3\.org\/2000\/svg)/)).toEqual([]);
});

test('names of callers are neither in URLs nor in browser storage', () => {
  expect(found(/\.tsx?$/, /localStorage|document\.cookie|indexedDB|history\.(push|replace)State/)).toEqual([
    // The only stored value is the range of charts, which is one of four names.
    expect.stringMatching(/^state\.ts:\d+: history\.replaceState\(.*queryWith\(search, chosen\)\}/),
  ]);
  expect(found(/\.tsx?$/, /location\.(hash|href|search)\s*=[^=]/)).toEqual([
    expect.stringMatching(/^views\/bucket\.tsx:\d+: location\.hash = '#bucket';$/),
  ]);
});
