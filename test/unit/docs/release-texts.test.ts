/* Tests .ci/release-texts.mjs and the reader of benchmarks in .ci/gate.mjs, in a process of Node.js. */
import { execFileSync } from 'node:child_process';
import { expect, test } from '@jest/globals';
import { driftLine } from '../../bench/drift.js';
import { repositoryRoot } from '../../support/process/tools.js';

/** Calls a function of a module in .ci once for each list of arguments. Returns the results, null for undefined. */
function calls(module: string, name: string, lists: readonly (readonly unknown[])[]): unknown[] {
  const script = `const { ${name} } = await import('./.ci/${module}.mjs');
    console.log(JSON.stringify(${JSON.stringify(lists)}.map((args) => ${name}(...args) ?? null)));`;
  const args = ['--input-type=module', '--eval', script];
  return JSON.parse(
    execFileSync(process.execPath, args, { cwd: repositoryRoot, encoding: 'utf8' }),
  ) as unknown[];
}

test('a candidate comes before its release, and no version before the current one', () => {
  const cases = [
    ['0.1.0', 'minor', '0.2.0'],
    ['0.1.0', '1.0.0-rc.1', '1.0.0-rc.1'],
    ['1.0.0-rc.1', '1.0.0-rc.1', '1.0.0-rc.1'],
    ['1.0.0-rc.1', '1.0.0-rc.2', '1.0.0-rc.2'],
    ['1.0.0-rc.2', '1.0.0-rc.1', null],
    ['1.0.0-rc.10', '1.0.0-rc.9', null],
    ['1.0.0-rc.1', '1.0.0', '1.0.0'],
    ['1.0.0', '1.0.0-rc.2', null],
    ['1.0.0-rc.1', 'patch', '1.0.0'],
    ['1.0.0-rc.1', 'major', '1.0.0'],
    ['1.2.0-rc.1', 'patch', '1.2.0'],
    ['1.2.0-rc.1', 'major', '2.0.0'],
    ['1.2.3', '1.2.4-beta.1', null],
    ['1.2.3', '1.2.4-rc.0', null],
  ];
  const given = cases.map(([current, wanted]) => [current, wanted]);
  expect(calls('release-texts', 'nextVersion', given)).toEqual(cases.map(([, , next]) => next));
});

test('release notes begin with the breaking changes, and say what became of them', () => {
  const changelog = `# Changelog

## [Unreleased]

About this version.

### Removed

- **Breaking:** A command. Use
  another one.
- A message.

### Added

### Fixed

- **Breaking:** A field.

## [0.1.0] - 2026-01-01
`;
  const notes = `About this version.

### Breaking

- **Removed:** A command. Use
  another one.
- **Fixed:** A field.

### Removed

- A message.`;
  const empty = changelog.replaceAll(/^(- |\s\s).*$/gm, '');
  expect(calls('release-texts', 'unreleasedNotes', [[changelog], [empty]])).toEqual([notes, '']);
});

test('the sections of the notes must fit the version', () => {
  const notes = (...titles: string[]) => titles.map((title) => `### ${title}\n\n- Something.`).join('\n\n');
  const cases = [
    [notes('Breaking', 'Added', 'Fixed'), '1.0.0-rc.1', null],
    [notes('Breaking', 'Added', 'Fixed'), '0.2.0', null],
    [notes('Breaking', 'Added', 'Fixed'), '1.1.0', expect.stringContaining('breaking changes')],
    [notes('Added', 'Fixed'), '1.1.0', null],
    [notes('Added'), '1.1.0', expect.stringContaining('no section Fixed')],
    [notes('Added', 'Fixed'), '2.0.0', expect.stringContaining('no section Breaking')],
    [notes('Fixed', 'Security'), '1.1.1', null],
    [notes('Added', 'Fixed'), '1.1.1', '1.1.1 is a patch, but its notes have the section Added'],
    ['', '1.1.1', expect.stringContaining('has no notes')],
    [notes('News', 'Added', 'Fixed'), '1.1.0', expect.stringContaining('the section News')],
  ];
  const given = cases.map(([text, version]) => [text, version]);
  expect(calls('release-texts', 'notesProblem', given)).toEqual(cases.map(([, , problem]) => problem));
});

test('a version in a text is not a part of another version', () => {
  const text =
    'weir:1.0.0 weir:1.0.0-rc.1 weir-1.0.0.tgz weir-chart-1.0.0.tgz VERSION=1.0.0 VERSION=1.0.0-rc.1';
  const later =
    'weir:1.1.0 weir:1.0.0-rc.1 weir-1.1.0.tgz weir-chart-1.1.0.tgz VERSION=1.1.0 VERSION=1.0.0-rc.1';
  expect(calls('release-texts', 'namingVersion', [[text, '1.0.0', '1.1.0']])).toEqual([later]);
});

test('a case above the ratio, and a case that did not run, keep a version from being released', () => {
  const line = (name: string, ratio: number) =>
    driftLine({ name, base: 10, branch: 10 * ratio, ratio, baseRatios: [0.98, 1.02] });
  const good = [line('one hot key: weir, memory', 1.05), line('1,000 tenants: weir, Redis', 0.97)].join('\n');
  const skipped = 'one hot key: skipped, because a server failed';
  expect(
    calls('gate', 'slowerCases', [
      [good],
      [`${good}\n${line('one hot key: weir, Redis', 1.06)}`],
      [`${good}\n${skipped}`],
      [''],
    ]),
  ).toEqual([[], ['one hot key: weir, Redis: 1.06'], [skipped], ['bench:compare printed no ratios']]);
});
