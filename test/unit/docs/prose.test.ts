/* The prose linter (.ci/prose.mjs): its rules, the text that it reads, and the list of paths that it skips. */
import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { TempDir } from '../../support/process/temp-dir.js';
import { repositoryRoot } from '../../support/process/tools.js';

interface Rule {
  readonly name: string;
  readonly written: string;
  readonly better: string;
  readonly passes: string;
}

function prose(...args: readonly string[]): string {
  const script = `${repositoryRoot}/.ci/prose.mjs`;
  const { stdout, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout;
}

const rules = JSON.parse(prose('--rules')) as readonly Rule[];
let folder: TempDir;
/** Findings in the folder, as `path:line: rule: "words"`. */
let found: readonly string[];

beforeAll(() => {
  folder = new TempDir();
  for (const { name, written, better, passes } of rules) {
    folder.write(`src/written/${name}.ts`, `// ${written}\n`);
    folder.write(`src/better/${name}.ts`, `// ${better}\n`);
    folder.write(`src/passes/${name}.ts`, `// ${passes}\n`);
  }
  folder.write(
    'docs/page.md',
    [
      '# What it costs',
      '',
      'A limit has a rate. Its',
      'rules stand here, and `rules stand at customer` is code.',
      '',
      '| limit | rules stand here |',
      '|---|---|',
      '- [Rules](stand.md) exist.',
      '```sh',
      'rules stand here',
      '```',
    ].join('\n'),
  );
  folder.write(
    'src/code.ts',
    [
      '/**',
      ' * A limit. See RFC 9113: "the rules stand here and there".',
      ' *',
      ' * Its rules stand here.',
      ' */',
      "export const A = 'rules stand at customer now';",
      "export const B = 'stand';",
      `export const C = 'the rule ' + A + " has no rate, and it stands here";`,
      'export const D = 1; // The rules',
      '                    // stand here.',
    ].join('\n'),
  );
  folder.write(
    'src/script.lua',
    'local a = 1 -- the rules stand here\n-- A pair, of\n-- which one stands.\n',
  );
  folder.write(
    'test/code.ts',
    "// biome-ignore lint: rules stand\nexport const A = 'rules stand at customer now';\n",
  );
  folder.write('CHANGELOG.md', '# Changelog\n\n## 2\n\n- It stands.\n\n## 1\n\n- It stands.\n');
  found = findings();
});
afterAll(() => folder.remove());

function findings(...args: readonly string[]): readonly string[] {
  return prose('--root', folder.path, ...args)
    .split('\n')
    .filter((line) => /^\S+:\d+: /.test(line))
    .map((line) => line.replace(/ \(write ".*$/, ''));
}

describe('rules', () => {
  test.each(rules)('$name finds its example', ({ name }) => {
    expect(found.filter((line) => line.startsWith(`src/written/${name}.ts:1: ${name}: `))).toHaveLength(1);
  });

  test.each(rules)('$name passes a similar text, and its better example has no finding', ({ name }) => {
    const fine = [`src/better/${name}.ts:`, `src/passes/${name}.ts:`];
    expect(found.filter((line) => fine.some((start) => line.startsWith(start)))).toEqual([]);
  });
});

test('paragraphs and cells of Markdown are checked, code is not', () => {
  expect(found.filter((line) => line.startsWith('docs/'))).toEqual([
    'docs/page.md:3: stands: "stand here"',
    'docs/page.md:6: stands: "stand here"',
  ]);
});

test('comments and messages of TypeScript and Lua are checked, quotes and directives are not', () => {
  expect(found.filter((line) => /^(?:src\/(?:code|script)|test)/.test(line))).toEqual([
    'src/code.ts:4: stands: "stand here"',
    'src/code.ts:6: stands: "stand at"',
    'src/code.ts:8: stands: "stands here"',
    'src/code.ts:9: stands: "stand here"',
    'src/script.lua:1: stands: "stand here"',
    'src/script.lua:2: stands: "stands"',
    'src/script.lua:2: of-which: "of which"',
  ]);
});

test('strings of src with four words are messages', () => {
  expect(findings('--kind', 'message')).toEqual([
    'src/code.ts:6: stands: "stand at"',
    'src/code.ts:8: stands: "stands here"',
  ]);
});

test('the newest section of the changelog is checked', () => {
  expect(found.filter((line) => line.startsWith('CHANGELOG'))).toEqual(['CHANGELOG.md:5: stands: "stands"']);
});

test('a path on the command line is checked alone', () => {
  expect(findings(`${folder.path}/src/written/stands.ts`)).toEqual([
    'src/written/stands.ts:1: stands: "stand at"',
  ]);
});
