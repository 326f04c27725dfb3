import { rmSync, symlinkSync } from 'node:fs';
import { relative } from 'node:path';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { isRefusedAtStart, loadPolicies } from '../../../../src/config/files/load-policies.js';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import {
  invalidFile,
  PolicyDir,
  statesOf,
  UNPARSEABLE,
  validFile,
} from '../../../support/policy/policy-dir.js';

// property/domains.property.test.ts tests the state of each domain for all changes of files.
let policies: PolicyDir;
beforeEach(() => {
  policies = new PolicyDir();
});

describe('an invalid domain', () => {
  test('alone prevents a start, but not a reload', () => {
    expect(isRefusedAtStart(policies.load({ 'a.yaml': invalidFile('a') }))).toBe(true);
    expect(isRefusedAtStart(policies.load({ 'b.yaml': validFile('b', 1) }))).toBe(false);
    policies.load({ 'b.yaml': undefined });
    policies.load({ 'a.yaml': validFile('a', 1) });
    const last = policies.load({ 'a.yaml': invalidFile('a') });
    expect(statesOf(last)).toEqual(['a: kept 1']);
    expect(isRefusedAtStart(last)).toBe(false);
  });

  test('with an invalid key table', () => {
    const digest = 'a'.repeat(64);
    const policy = 'domain: d\nderive: [{ entry: t, from: [api_key], sha256_file: keys.yaml }]\n';
    const { version } = policies.load({ 'd.yaml': policy, 'keys.yaml': `${digest}: acme\n` }).policySet;
    const broken = policies.load({ 'keys.yaml': 'not a digest: acme\n' });
    expect(statesOf(broken)).toEqual(['d: kept']);
    expect(broken.policySet.version).toBe(version);
    const repaired = policies.load({ 'keys.yaml': `${digest}: other\n` });
    expect(statesOf(repaired)).toEqual(['d: ok']);
    expect(repaired.policySet.version).not.toBe(version);
  });
});

describe('a file that cannot be parsed', () => {
  test('keeps the last domain, even if it is empty, binary, or not a policy any more', () => {
    policies.load({ 'a.yaml': validFile('a', 1) });
    for (const text of [UNPARSEABLE, '', '\0', '- list\n', 'descriptors: []\n', 'other: file\n']) {
      const loaded = policies.load({ 'a.yaml': text });
      expect(statesOf(loaded)).toEqual(['a: kept 1']);
      expect(loaded.domains[0]?.files).toEqual([policies.join('a.yaml')]);
    }
  });

  test('whose domain is now in another file: weir cannot know whether it is the same domain', () => {
    policies.load({ 'a.yaml': validFile('d', 1) });
    const loaded = policies.load({ 'a.yaml': UNPARSEABLE, 'b.yaml': validFile('d', 2) });
    expect(statesOf(loaded)).toEqual(['d: kept 1']);
    expect(policies.errorsOf(loaded).at(-1)).toBe(
      'b.yaml:1:9: domain: the domain "d" was last defined in a.yaml, which cannot be read now; correct ' +
        'or remove that file',
    );
    expect(statesOf(policies.load({ 'a.yaml': undefined }))).toEqual(['d: ok 2']);
  });
});

test('a directory that cannot be listed keeps its domains, and an empty one has none', () => {
  const { dir } = policies;
  const { policySet } = policies.load({ 'a.yaml': validFile('a', 1) });
  rmSync(dir.path, { recursive: true });
  const loaded = policies.load({});
  expect(statesOf(loaded)).toEqual(['a: kept 1']);
  expect(loaded.policySet.version).toBe(policySet.version);
  expect(loaded.errors.map(formatProblem)).toEqual([
    `${dir.path}: "${dir.path}" does not exist; check the path`,
  ]);
  dir.write('a.yaml', '');
  expect(statesOf(policies.load({}))).toEqual(['a: kept 1']);
  expect(statesOf(policies.load({ 'a.yaml': undefined }))).toEqual([]);
});

test('the same applies to a directory under another name', () => {
  const { dir } = policies;
  const place = `./${relative(process.cwd(), dir.path)}/`;
  dir.write('a.yaml', validFile('a', 1));
  const before = loadPolicies([place]);
  rmSync(dir.path, { recursive: true });
  expect(statesOf(loadPolicies([place], {}, before))).toEqual(['a: kept 1']);
});

test('files behind a link to a directory keep their version while the link is broken', () => {
  const { dir } = policies;
  const place = { directory: dir.path, setting: 'RUNTIME_ROOT', beside: false, ignoreDotFiles: false };
  dir.write('..v1/team/a.yaml', validFile('a', 1));
  dir.write('top.yaml', validFile('top', 1));
  symlinkSync('..v1', dir.join('..data'));
  symlinkSync('..data/team', dir.join('team'));
  const before = loadPolicies([place]);
  expect(statesOf(before)).toEqual(['a: ok 1', 'top: ok 1']);
  rmSync(dir.join('..data'));
  expect(statesOf(loadPolicies([place], {}, before))).toEqual(['a: kept 1', 'top: ok 1']);
});

describe('a domain in two files, not merged', () => {
  test('in three files, each of which is checked', () => {
    const loaded = policies.load({
      'a.yaml': validFile('d', 1),
      'b.yaml': invalidFile('d'),
      'c.yaml': validFile('d', 1),
    });
    expect(policies.errorsOf(loaded).map((error) => error.split(' ')[0])).toEqual([
      'b.yaml:1:9:',
      'b.yaml:2:1:',
      'c.yaml:1:9:',
    ]);
  });
});

describe('the version', () => {
  const versionAfter = (files: Readonly<Record<string, string | undefined>>): string =>
    policies.load(files).policySet.version;

  test('differs if and only if the policies in effect differ', () => {
    const first = versionAfter({ 'a.yaml': validFile('a', 1), 'b.yaml': validFile('b', 1) });
    expect(versionAfter({})).toBe(first);
    expect(versionAfter({ 'b.yaml': UNPARSEABLE })).toBe(first);
    const second = versionAfter({ 'a.yaml': validFile('a', 2) });
    expect(second).not.toBe(first);
    expect(versionAfter({ 'b.yaml': invalidFile('b') })).toBe(second);
    const third = versionAfter({ 'b.yaml': validFile('b', 2) });
    expect([first, second]).not.toContain(third);
    expect(versionAfter({ 'a.yaml': validFile('a', 1), 'b.yaml': validFile('b', 1) })).toBe(first);
    expect(first).toMatch(/^[0-9a-f]{12}$/);
  });

  test('is that of a replica that never read the invalid file', () => {
    policies.load({ 'a.yaml': validFile('a', 1) });
    const kept = versionAfter({ 'a.yaml': invalidFile('a') });
    policies.restart();
    expect(versionAfter({ 'a.yaml': validFile('a', 1) })).toBe(kept);
  });
});
