/* Tests .ci/prose.mjs: the spelling of the manual, messages and comments, and phrases that read as translated. */
import { spawnSync } from 'node:child_process';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { TempDir } from '../support/process/temp-dir.js';
import { optionalToolPath, repositoryRoot } from '../support/process/tools.js';

function prose(typos: string, ...paths: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [`${repositoryRoot}/.ci/prose.mjs`, ...paths],
    { encoding: 'utf8', env: { ...process.env, WEIR_TEST_TYPOS: typos } },
  );
  expect(stderr).toBe('');
  return { status, lines: stdout.trimEnd().split('\n') };
}

let folder: TempDir;
beforeAll(() => {
  folder = new TempDir();
});

describe('phrases', () => {
  const phrases = (path: string, text: string) =>
    prose('/no/typos', folder.write(path, text)).lines.map((line) => line.replace(/^.*?(\w+\.\w+:\d)/, '$1'));

  test.each([
    ['page.md', 'Set it.\n\nThe rules\nstand at customer.\n', 'page.md:3: "rules stand at"'],
    ['page.md', '> The rules\n> stand at customer.\n', 'page.md:1: "rules stand at"'],
    ['code.ts', "const A = 'rules stand at customer';\n", 'code.ts:1: "rules stand at"'],
    ['code.ts', '\n/**\n * The rules\n * stand at customer.\n */\n', 'code.ts:3: "rules stand at"'],
    ['script.lua', '-- The rules\n-- stand at customer.\n', 'script.lua:1: "rules stand at"'],
  ])('finds a phrase in %s: %j', (path, text, finding) => {
    const lines = phrases(path, text);
    expect(lines[0]?.replaceAll(/ (?:\*|--|>)(?= )/g, '')).toBe(`${finding}: write "rules exist for"`);
    expect(lines.at(-1)).toBe('prose: 1 finding');
  });

  test.each([
    ['page.md', '```text\nrules stand at customer\n```\n\nA `rules stand at` is code.\n'],
    ['CHANGELOG.md', 'The nonrules stand at ease.\n'],
    ['data.json', '"rules stand at customer"\n'],
  ])('finds none in %s: %j', (path, text) => {
    expect(phrases(path, text).at(-1)).toBe('prose: no findings');
  });
});

const typos = optionalToolPath('typos');
(typos === undefined ? describe.skip : describe)('spelling', () => {
  test('is correct, and no phrase is used, in the whole project', () => {
    expect(prose(typos as string)).toEqual({ status: 0, lines: ['prose: no findings'] });
  });

  test('is checked', () => {
    const { status, lines } = prose(
      typos as string,
      folder.write('page.md', 'Requests are recieved by Envoy.\n'),
    );
    expect(status).toBe(1);
    expect(lines[0]).toContain('`recieved` should be `received`');
  });
});
