/* Tests the list of messages of .ci/messages/, and its renames in source, tests and manual. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { TempDir } from '../support/process/temp-dir.js';
import { repositoryRoot } from '../support/process/tools.js';

let folder: TempDir;
beforeEach(() => {
  folder = new TempDir();
  const formatter = { indentStyle: 'space', lineWidth: 110 };
  const javascript = { formatter: { quoteStyle: 'single' } };
  folder.write('.biome.json', JSON.stringify({ root: true, formatter, javascript }));
});
afterEach(() => folder.remove());

function messages(...args: readonly string[]): readonly string[] {
  const script = `${repositoryRoot}/.ci/messages/print.mjs`;
  const command = [script, '--root', folder.path, ...args];
  const { stdout, stderr } = spawnSync(process.execPath, command, { encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout === '' ? [] : stdout.trimEnd().split('\n');
}

/** Returns the output of `--rename` for a table with one line for each of `rows`. */
function rename(...rows: readonly (readonly [old: string, now: string])[]): readonly string[] {
  return messages('--rename', folder.write('table.tsv', rows.map((row) => row.join('\t')).join('\n')));
}

const read = (name: string): string => readFileSync(folder.join(name), 'utf8');

test('lists texts for people, sorted by file, and joins concatenated strings', () => {
  folder.write(
    'src/b.ts',
    `import { x } from 'some package';
const UNIT: 'no such unit' | undefined = undefined;
fail(\`\${reader.key} is empty; \` + 'write a name, ' + (isOptional ? 'or remove it' : x));
if (text === 'not a message' || /no message either/.test(text)) log.info('Loaded the policy\\nagain', { 'some key': 1 });
`,
  );
  folder.write('src/a.ts', "send('content-type', 'text/plain; charset=utf-8', 'one', 'Two words');\n");
  folder.write('src/page.html', '<p title="Two words">Some <b>bold</b> text</p><i>one</i>\n');
  folder.write('deploy/alerts.yaml', '- alert: Down\n  annotations:\n    summary: weir is down\n');
  expect(messages()).toEqual([
    'deploy/alerts.yaml:3: weir is down',
    'src/a.ts:1: Two words',
    'src/b.ts:3: {key} is empty; write a name, {isOptional}',
    'src/b.ts:3: or remove it',
    'src/b.ts:4: Loaded the policy\\nagain',
    'src/page.html:1: Two words',
    'src/page.html:1: Some <b>bold</b> text',
  ]);
  expect(messages('src/a.ts')).toEqual(['src/a.ts:1: Two words']);
  expect(messages('src/a')).toEqual([]);
});

test('gives different expressions different names', () => {
  folder.write('src/a.ts', `say(\`\${a.name} is not \${b.name}, but \${a.name} or {name}\`);\n`);
  expect(messages()).toEqual(['src/a.ts:1: {name2} is not {name3}, but {name2} or {name}']);
});

test('replaces texts, also within placeholders, and breaks long ones', () => {
  folder.write(
    'src/a.ts',
    `throw new Error(\`\${unit} is no unit; \` + \`\${near ? \`did you mean \${near}?\` : 'write a unit'}\`);
throw new Error('short enough');
`,
  );
  const sentence = 'This is a sentence of so many words that it does not fit into one line of 120 columns, ';
  expect(
    rename(
      ['{unit} is no unit; {near}', '{unit} is not a valid unit. {near}'],
      ['did you mean {near}?', 'Did you mean {near}?'],
      ['short enough', `${sentence}and "so" it's broken in two lines`],
    ),
  ).toEqual(['replaced 3 texts in 1 file; problems to check by hand: 0']);
  expect(read('src/a.ts')).toBe(
    `throw new Error(\`\${unit} is not a valid unit. \${near ? \`Did you mean \${near}?\` : 'write a unit'}\`);
throw new Error(
  '${sentence}and "so" ' +
    "it's broken in two lines",
);
`,
  );
});

test('reports rows of a table that cannot be applied', () => {
  folder.write('src/a.ts', `say(\`\${key} is empty\`);\n`);
  expect(rename(['no such text', 'other text'], ['{key} is empty', 'it has no {name}'])).toEqual([
    'not found: no such text',
    'src/a.ts:1: unknown placeholder {name}: it has no {name}',
    'src/a.ts:1: placeholder {key} is missing: it has no {name}',
    'replaced 1 text in 1 file; problems to check by hand: 3',
  ]);
});

test.each([
  ['a whole text', `'x.yaml:1: "a" is no unit; write b (c)'`, `'x.yaml:1: write b (c), as "a" is not valid'`],
  [
    'a template',
    `\`"\${unit}" is no unit; write \${all} (c)\``,
    `\`write \${all} (c), as "\${unit}" is not valid\``,
  ],
  [
    'a regular expression',
    '/^.*: "a" is no unit; write \\w+ \\(c\\)$/',
    '/^.*: write \\w+ \\(c\\), as "a" is not valid$/',
  ],
  ['another text', "'two words'", "'two words'"],
])('in tests: %s', (_, before, after) => {
  folder.write('src/a.ts', `say(\`"\${unit}" is no unit; write \${all} (c)\`);\n`);
  folder.write('test/a.test.ts', `f(${before});\n`);
  rename(['"{unit}" is no unit; write {all} (c)', 'write {all} (c), as "{unit}" is not valid']);
  expect(read('test/a.test.ts')).toBe(`f(${after});\n`);
});

test('updates a partial quote if its place in the new text is certain', () => {
  folder.write('src/a.ts', "say('the policy file is very empty, so write one');\n");
  folder.write('test/a.test.ts', "f('the policy file is very');\nf('so write one');\nf(/very empty, so/);\n");
  expect(
    rename(['the policy file is very empty, so write one', 'The file is empty. Write a policy']),
  ).toEqual([
    'test/a.test.ts:3: cannot rewrite the quote "very empty, so" from: the policy file is very empty, so write one',
    'replaced 3 texts in 2 files; problems to check by hand: 1',
  ]);
  expect(read('test/a.test.ts')).toBe("f('The file is');\nf('Write a policy');\nf(/very empty, so/);\n");
});

test('leaves quotes alone that can belong to another text', () => {
  folder.write('src/a.ts', "say('this file is not empty');\nsay('this file is not empty or broken');\n");
  folder.write('test/a.test.ts', "f('this file is not empty or broken');\nf('this file is not');\n");
  expect(rename(['this file is not empty', 'the file has content'])).toEqual([
    'test/a.test.ts:2: cannot rewrite the quote "this file is not" from: this file is not empty',
    'replaced 1 text in 1 file; problems to check by hand: 1',
  ]);
  expect(read('test/a.test.ts')).toBe("f('this file is not empty or broken');\nf('this file is not');\n");
});

test('replaces texts in the manual, also across line breaks, and leaves short texts in prose alone', () => {
  folder.write('src/a.ts', `say(\`\${n} rules have no limit of their own\`);\nsay('no limit');\n`);
  folder.write('docs/a.md', '3 rules have no limit\nof their own. This has no limit.\n');
  rename(['{n} rules have no limit of their own', '{n} rules without a limit'], ['no limit', 'unlimited']);
  expect(read('docs/a.md')).toBe('3 rules without a limit. This has no limit.\n');
});
