/* Tests that each rule of .ci/tidy.mjs finds its violations, and nothing else. */
import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { TempDir } from '../support/process/temp-dir.js';
import { repositoryRoot } from '../support/process/tools.js';

const LONG_WORDS = 'word '.repeat(30).trim();
const MANY_LINES = '// line\n'.repeat(401);

let folder: TempDir;
beforeEach(() => {
  folder = new TempDir();
  folder.write('src/main.ts', "import './used.js';\n");
  folder.write('src/used.ts', 'export const USED = 1;\n');
});
afterEach(() => folder.remove());

/** Returns the findings for the folder, without the last line. */
function findings(): string[] {
  const script = `${repositoryRoot}/.ci/tidy.mjs`;
  const { stdout, stderr, status } = spawnSync(process.execPath, [script, folder.path], { encoding: 'utf8' });
  expect(stderr).toBe('');
  const lines = stdout.trimEnd().split('\n');
  expect([status, lines.pop()]).toEqual(lines.length === 0 ? [0, 'tidy'] : [1, `${lines.length} findings`]);
  return lines;
}

function except(...exceptions: readonly object[]): void {
  folder.write('.ci/tidy-exceptions.json', JSON.stringify(exceptions));
}

test('has no findings for a tidy project', () => {
  expect(findings()).toEqual([]);
});

test.each([
  ['a wide comment', `// ${LONG_WORDS}\n`],
  ['wide code', `export const A = '${LONG_WORDS}';\n`],
  ['a wide line behind a template of several lines', `export const A = \`\n\`;\n// ${LONG_WORDS}\n`],
])('line-width: %s', (_, text) => {
  folder.write('src/used.ts', text);
  expect(findings()).toEqual([expect.stringMatching(/^src\/used\.ts:\d: line-width: \d{3} columns; break/)]);
});

test.each([
  ['a text of several lines', `export const A = \`\n${LONG_WORDS}\n\`;\n`],
  ['text without a space', `// https://example.com/${'x'.repeat(120)}\n`],
])('line-width allows %s', (_, text) => {
  folder.write('src/used.ts', text);
  expect(findings()).toEqual([]);
});

test('file-length', () => {
  folder.write('src/used.ts', MANY_LINES);
  expect(findings()).toEqual([
    'src/used.ts:401: file-length: 401 lines; split the file into files of at most 400 lines',
  ]);
});

test('folder-size', () => {
  const names = Array.from({ length: 19 }, (_, i) => `f${i}`);
  for (const name of names) folder.write(`src/${name}.ts`, '');
  folder.write('src/main.ts', ['used', ...names].map((name) => `import './${name}.js';\n`).join(''));
  expect(findings()).toEqual([expect.stringMatching(/^src:1: folder-size: 21 files; move/)]);
});

test('unused: files that nothing imports, or only tests import', () => {
  folder.write('src/forgotten.ts', '');
  folder.write('src/tested.ts', '');
  folder.write('src/thread.ts', '');
  folder.write('src/used.ts', "export const THREAD = 'build/src/thread.js';\n");
  folder.write('test/unit/tested.test.ts', "import '../../src/tested.js';\nimport '../support/helper.js';\n");
  folder.write('test/support/helper.ts', '');
  folder.write('test/support/lost.ts', '');
  expect(findings().sort()).toEqual([
    'src/forgotten.ts:1: unused: no file imports this file; delete it',
    'src/tested.ts:1: unused: only tests import this file; delete it, or move it to test/support',
    'test/support/lost.ts:1: unused: no file imports this file; delete it',
  ]);
});

test('docstrings: exported functions and classes have one', () => {
  folder.write(
    'src/used.ts',
    '/** One. */\nexport function one() {}\n\nexport async function two() {}\nexport class Three {}\n' +
      'function own() {}\n',
  );
  expect(findings()).toEqual([
    expect.stringMatching(/^src\/used\.ts:4: docstrings: two has no doc comment; write a doc comment/),
    expect.stringMatching(/^src\/used\.ts:5: docstrings: Three has no doc comment; write a doc comment/),
  ]);
});

test.each([
  ['a file', '// See limiter/gone.ts.\n', 'the file limiter/gone.ts does not exist'],
  ['a page', '/** The way of it, PLAN section 6. */\n', 'the file PLAN does not exist'],
  ['a section', '/** See docs/page.md, "Nowhere". */\n', 'docs/page.md has no section "Nowhere"'],
  ['a name', '/** As {@link Nobody} does. */\n', 'Nobody does not exist'],
])('references: %s that does not exist', (_, text, what) => {
  folder.write('docs/page.md', '## Somewhere\n');
  folder.write('src/used.ts', `// See main.ts and docs/page.md, "Somewhere".\n${text}`);
  expect(findings()).toEqual([expect.stringContaining(`src/used.ts:2: references: ${what}; `)]);
});

test('references: those of the page that shows the rooms', () => {
  folder.write('docs/internals/architecture.md', 'The way begins in `main.ts` and goes to `gone.ts`.\n');
  expect(findings()).toEqual([
    expect.stringContaining(
      'docs/internals/architecture.md:1: references: the file gone.ts does not exist; ',
    ),
  ]);
});

test.each([
  ["import { readFileSync } from 'node:fs';", 'this file imports readFileSync from node:fs'],
  ["import { readFile } from 'node:fs/promises';", 'this file imports readFile from node:fs'],
  [
    "import {\n  createReadStream,\n  statSync,\n} from 'fs';",
    'this file imports createReadStream from node:fs',
  ],
  ["import { openSync as mine } from 'node:fs';", 'this file imports openSync from node:fs'],
  ["import * as fs from 'node:fs';", 'this file imports all of node:fs'],
  ["const fs = require('node:fs');", 'this file imports all of node:fs'],
  ["process.loadEnvFile('.env');", 'this file imports all of node:fs'],
])('file-readers: %s', (text, what) => {
  folder.write('src/used.ts', `${text}\n`);
  expect(findings()).toEqual([
    expect.stringMatching(`^src/used.ts:1: file-readers: ${what}; read files with`),
  ]);
});

test.each([
  ['src/used.ts', "import { statSync, writeFileSync } from 'node:fs';"],
  ['src/used.ts', "import type { FileHandle } from 'node:fs/promises';"],
])('file-readers allows code that opens nothing: %s %s', (path, text) => {
  folder.write(path, `${text}\n`);
  expect(findings()).toEqual([]);
});

test('an exception names a finding and its reason', () => {
  folder.write('src/used.ts', MANY_LINES);
  except({ rule: 'file-length', path: 'src/used.ts', reason: 'It is a table that is printed by a script.' });
  expect(findings()).toEqual([]);
});

test('exceptions are few, and each names one file, has a reason and is used', () => {
  const reason = 'This one was looked at and left.';
  except(
    { rule: 'file-length', path: 'src/used.ts', reason },
    { rule: 'none', path: 'src/*.ts', reason: '' },
  );
  expect(findings()).toEqual([
    '.ci/tidy-exceptions.json: the rule none does not exist',
    '.ci/tidy-exceptions.json: src/*.ts: list each file, without wildcards',
    '.ci/tidy-exceptions.json: src/*.ts: give a reason of at least 20 characters',
    '.ci/tidy-exceptions.json: src/used.ts: file-length reports nothing for this file; remove the exception',
    '.ci/tidy-exceptions.json: src/*.ts: none reports nothing for this file; remove the exception',
  ]);
  except(...Array.from({ length: 11 }, (_, i) => ({ rule: 'names', path: `src/f${i}.ts`, reason })));
  expect(findings()[0]).toBe('.ci/tidy-exceptions.json: 11 exceptions; at most 10 are allowed');
});
