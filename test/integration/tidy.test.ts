/* Tests that each rule of .ci/tidy.mjs finds its violations, and nothing else. */
import { spawnSync } from 'node:child_process';
import { beforeEach, expect, test } from '@jest/globals';
import { plural } from '../../src/runtime/texts.js';
import { TempDir } from '../support/process/temp-dir.js';
import { repositoryRoot } from '../support/process/tools.js';

const LONG_WORDS = 'word '.repeat(30).trim();

let folder: TempDir;
beforeEach(() => {
  folder = new TempDir();
  folder.write('src/main.ts', "import './used.js';\n");
  folder.write('src/used.ts', 'const USED = 1;\n');
});

/** Returns the findings for the folder, without the last line. */
function findings(): string[] {
  const script = `${repositoryRoot}/.ci/tidy.mjs`;
  const { stdout, stderr, status } = spawnSync(process.execPath, [script, folder.path], { encoding: 'utf8' });
  expect(stderr).toBe('');
  const lines = stdout.trimEnd().split('\n');
  expect([status, lines.pop()]).toEqual(
    lines.length === 0 ? [0, 'tidy'] : [1, plural(lines.length, 'finding')],
  );
  return lines;
}

test('has no findings for a tidy project', () => {
  expect(findings()).toEqual([]);
});

test.each([
  ['a wide comment', `// ${LONG_WORDS}\n`],
  ['wide code', `const A = '${LONG_WORDS}';\n`],
  ['a wide line behind a template of several lines', `const A = \`\n\`;\n// ${LONG_WORDS}\n`],
])('line-width: %s', (_, text) => {
  folder.write('src/used.ts', text);
  expect(findings()).toEqual([expect.stringMatching(/^src\/used\.ts:\d: line-width: \d{3} columns; break/)]);
});

test.each([
  ['a text of several lines', `const A = \`\n${LONG_WORDS}\n\`;\n`],
  ['text without a space', `// https://example.com/${'x'.repeat(120)}\n`],
])('line-width allows %s', (_, text) => {
  folder.write('src/used.ts', text);
  expect(findings()).toEqual([]);
});

test('registry-hosts: in a page, the lock file and a comment', () => {
  const host = ['registry', 'npmjs', 'org'].join('.');
  folder.write('docs/page.md', `See\n[npm](https://${host}/x) and https://example.com/registry.\n`);
  folder.write('package-lock.json', `{ "resolved": "https://${host}/x.tgz" }\n`);
  folder.write('src/used.ts', `// ${host}\n`);
  const found = `registry-hosts: ${host} is the host of a package registry; link to the project's own page`;
  expect(findings().sort()).toEqual([
    `docs/page.md:2: ${found}`,
    `package-lock.json:1: ${found}`,
    `src/used.ts:1: ${found}`,
  ]);
});

test('unused: files that nothing imports, or only tests import', () => {
  folder.write('src/forgotten.ts', '');
  folder.write('src/tested.ts', '');
  folder.write('src/thread.ts', '');
  folder.write('src/used.ts', "const THREAD = 'build/src/thread.js';\n");
  folder.write('test/unit/tested.test.ts', "import '../../src/tested.js';\nimport '../support/helper.js';\n");
  folder.write('test/support/helper.ts', '');
  folder.write('test/support/lost.ts', '');
  expect(findings().sort()).toEqual([
    'src/forgotten.ts:1: unused: no file imports this file; delete it',
    'src/tested.ts:1: unused: only tests import this file; delete it, or move it to test/support',
    'test/support/lost.ts:1: unused: no file imports this file; delete it',
  ]);
});

test('exports: values that no other file names', () => {
  folder.write('src/used.ts', 'export const USED = 1;\nexport function lost() {}\nexport type Lost = 1;\n');
  folder.write('src/main.ts', "import { USED } from './used.js';\n");
  expect(findings()).toEqual([
    'src/used.ts:2: exports: no other file uses lost; remove `export`, or delete it',
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
