import { expect, test } from '@jest/globals';
import { mainHelp } from '../../../src/cli/help.js';
import { commandHelps } from '../../../src/cli/run.js';

const helps = [...commandHelps()];

test.each(helps)(
  'weir %s --help: how it is called, its exit codes, and lines that fit a screen',
  (name, help) => {
    expect(help).toMatch(new RegExp(`^Usage: weir ${name} `));
    expect(help).toMatch(/^Exit code: 0 .*\b2\b/ms);
    expect(help.split('\n').filter((line) => line.length > 120)).toEqual([]);
  },
);

test('weir --help lists every command', () => {
  for (const [name] of helps) expect(mainHelp()).toMatch(new RegExp(`^  ${name} `, 'm'));
  expect(
    mainHelp()
      .split('\n')
      .filter((line) => line.length > 120),
  ).toEqual([]);
});
