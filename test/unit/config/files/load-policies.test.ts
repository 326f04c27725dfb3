import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, truncateSync } from 'node:fs';
import { beforeEach, expect, test } from '@jest/globals';
import { loadPolicies } from '../../../../src/config/files/load-policies.js';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { TempDir } from '../../../support/process/temp-dir.js';

let dir: TempDir;
beforeEach(() => {
  dir = new TempDir();
});

const DIGEST = '2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae'; // foo
const domainsOf = (...paths: string[]): string[] => [...loadPolicies(paths).policySet.domains.keys()];
const errorsOf = (...paths: string[]): string[] => loadPolicies(paths).errors.map(formatProblem);

test('a directory: YAML files by name, without dotfiles, other files and directories', () => {
  dir.write('b.yml', 'domain: b\n');
  dir.write('a.yaml', 'domain: a\n');
  dir.write('.hidden.yaml', 'domain: hidden\n');
  dir.write('notes.txt', 'domain: txt\n');
  dir.write('sub/c.yaml', 'domain: c\n');
  mkdirSync(dir.join('directory.yaml'));
  symlinkSync('sub/c.yaml', dir.join('z-link.yaml'));
  const loaded = loadPolicies([dir.path]);
  expect(loaded.errors).toEqual([]);
  expect([...loaded.policySet.domains.keys()]).toEqual(['a', 'b', 'c']);
  expect(loaded.files).toEqual([dir.join('a.yaml'), dir.join('b.yml'), dir.join('z-link.yaml')]);
});

test('several paths, each file once', () => {
  const a = dir.write('a.yaml', 'domain: a\n');
  dir.write('b.yaml', 'domain: b\n');
  expect(domainsOf(a, dir.path, `${dir.path}/./a.yaml`)).toEqual(['a', 'b']);
});

test('a file that is named itself may have any name', () => {
  expect(domainsOf(dir.write('policy.conf', 'domain: a\n'))).toEqual(['a']);
});

test('unreadable files', () => {
  symlinkSync('gone.yaml', dir.join('dangling.yaml'));
  execFileSync('mkfifo', [dir.join('pipe.yaml')]);
  truncateSync(dir.write('large.yaml', ''), 5_000_000);
  const sentences: Record<string, string> = {
    'missing.yaml': 'does not exist; check the path',
    'dangling.yaml': 'does not exist; check the path',
    'pipe.yaml': 'is not a regular file; specify a regular file',
    'large.yaml': 'has 5000000 bytes, more than the maximum of 4194304; split it into several files',
  };
  for (const [name, sentence] of Object.entries(sentences)) {
    expect(errorsOf(dir.join(name))).toEqual([`${dir.join(name)}: "${dir.join(name)}" ${sentence}`]);
  }
  expect(errorsOf(dir.path)).toHaveLength(3);
});

test('a key table whose policy is invalid, or does not use it, only causes a warning', () => {
  dir.write('keys.yaml', `${DIGEST}: acme\n`);
  dir.write('policy.yaml', 'domain: d\nderive: [{ entry: t, from: [k], sha256_file: keys.yaml }\n');
  const loaded = loadPolicies([dir.path]);
  expect(loaded.errors.map((error) => error.file)).toEqual([dir.join('policy.yaml')]);
  expect(loaded.warnings.map(formatProblem)).toEqual([
    `${dir.join('keys.yaml')}: no policy uses this key table; refer to it with "sha256_file" in a ` +
      'policy, or remove the file',
  ]);
  // A key table loaded as a policy is an error that shows none of its keys.
  dir.write('keys.yaml', 'my-secret-key: acme\n');
  expect(errorsOf(dir.join('keys.yaml'))).toEqual([
    `${dir.join('keys.yaml')}:1:1: the file is not a policy, because none of its keys are known; begin ` +
      'it with "domain: <name>", or move it to another directory',
  ]);
});

test('an invalid key table that is used twice is reported once', () => {
  dir.write('secret/keys.yaml', 'oops: acme\n');
  for (const name of ['a', 'b']) {
    dir.write(
      `${name}.yaml`,
      `domain: ${name}\nderive: [{ entry: t, from: [k], sha256_file: secret/keys.yaml }]\n`,
    );
  }
  expect(errorsOf(dir.path)).toEqual([
    `${dir.join('secret/keys.yaml')}:1:1: [0]: this is not a SHA-256 digest (64 hex digits); write the ` +
      'digest of the API key, never the key itself',
  ]);
  expect(domainsOf(dir.path)).toEqual([]);
});

test('a missing key table is an error of the policy, and is watched', () => {
  const file = dir.write('a.yaml', 'domain: a\nderive: [{ entry: t, from: [k], sha256_file: keys.yaml }]\n');
  expect(errorsOf(file)).toEqual([
    `${file}:2:46: derive[0].sha256_file: "${dir.join('keys.yaml')}" does not exist; check the path`,
  ]);
  expect(loadPolicies([file]).files).toEqual([file, dir.join('keys.yaml')]);
});

test('the version depends on contents and names, not on directories', () => {
  const versionOf = (path: string): string => loadPolicies([path]).policySet.version;
  dir.write('one/a.yaml', 'domain: a\n');
  dir.write('two/a.yaml', 'domain: a\n');
  dir.write('three/a.yaml', 'domain: a # comment\n');
  dir.write('four/b.yaml', 'domain: a\n');
  expect(versionOf(dir.join('one'))).toMatch(/^[0-9a-f]{12}$/);
  expect(versionOf(dir.join('two'))).toBe(versionOf(dir.join('one')));
  expect(versionOf(dir.join('three'))).not.toBe(versionOf(dir.join('one')));
  expect(versionOf(dir.join('four'))).not.toBe(versionOf(dir.join('one')));
});
