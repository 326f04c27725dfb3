import { expect, test } from '@jest/globals';
import { readEnvFile } from '../../../../src/cli/migrate/env-file.js';

test.each([
  ['A=b', 'b'],
  ['  A = b  ', 'b'],
  ['export A=b', 'b'],
  ['A=', ''],
  ['A=b=c', 'b=c'],
  ['A=b # c', 'b'],
  ['A=b#c', 'b#c'],
  ['A=# c', ''],
  ["A='b # $c \\n' # d", 'b # $c \\n'],
  ['A="b # c\\n\\"d\\" \\$e" # f', 'b # c\n"d" $e'],
  ['A=100$', '100$'],
  ['A=a$$b', 'a$$b'],
  ['A="b"\r', 'b'],
  ['\uFEFFA=b', 'b'],
  ['A=b\nA=c', 'c'],
])('%j', (text, value) => {
  expect(readEnvFile(text)).toEqual({ variables: { A: value }, unknown: new Set(), problems: [] });
});

test.each(['__proto__', 'constructor', 'toString'])('%s is an ordinary name', (name) => {
  expect(Object.entries(readEnvFile(`${name}=b\n`).variables)).toEqual([[name, 'b']]);
  expect(readEnvFile('A=b').variables[name]).toBeUndefined();
});

test('comments and empty lines are ignored', () => {
  expect(readEnvFile('\n# A=b\n   \n').variables).toEqual({});
});

test.each([
  ['A', 'A has no "="'],
  ['A="b', 'quoted value of A does not end'],
  ["A='b' c", 'quoted value of A does not end'],
  ['A=$\x7bB}', 'refers to another variable'],
  ['A=$B', 'refers to another variable'],
  ['A="x$\x7bB:-c}"', 'refers to another variable'],
])('the value of %j is not known', (line, message) => {
  const { variables, unknown, problems } = readEnvFile(`\n${line}\n`);
  expect([variables, [...unknown]]).toEqual([{}, ['A']]);
  expect(problems).toEqual([{ line: 2, message: expect.stringContaining(message) }]);
});

test.each(['a: b', '- A=b', '1A=b', '{'])('%j is not a variable', (line) => {
  expect(readEnvFile(line)).toEqual({
    variables: {},
    unknown: new Set(),
    problems: [{ line: 1, message: 'the line is not of the form KEY=VALUE' }],
  });
});
