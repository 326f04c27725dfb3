import { appendFileSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { beforeEach, expect, test } from '@jest/globals';
import {
  fileIdentity,
  fingerprintSteps,
  isWrittenInPlace,
} from '../../../../src/config/files/fingerprint.js';
import { loadPolicies } from '../../../../src/config/files/load-policies.js';
import type { PolicyPlace } from '../../../../src/config/files/policy-paths.js';
import { runToCompletion } from '../../../../src/runtime/turns.js';
import { TempDir } from '../../../support/process/temp-dir.js';

let dir: TempDir;
beforeEach(() => {
  dir = new TempDir();
});

const TABLE = 'domain: a\nderive: [{ entry: t, from: [k], sha256_file: ../keys/table.yaml }]\n';

/**
 * All kinds of places for policies: valid and invalid files, links, key tables inside and outside, and empty
 * directories.
 */
const PLACES: readonly (readonly [name: string, make: () => readonly PolicyPlace[]])[] = [
  ['a file', () => [dir.write('p/a.yaml', 'domain: a\n')]],
  ['a file twice', () => [dir.write('p/a.yaml', 'domain: a\n'), dir.join('p')]],
  ['no file', () => [dir.join('p/none.yaml')]],
  [
    'a directory with a key table next to it',
    () => {
      dir.write('p/b.yaml', TABLE);
      dir.write('p/a.yaml', 'domain: b\n');
      dir.write('keys/table.yaml', `${'a'.repeat(64)}: acme\n`);
      return [dir.join('p')];
    },
  ],
  [
    'a directory with a key table, a missing one, and an invalid file',
    () => {
      dir.write('p/a.yaml', TABLE.replace('../keys/', ''));
      dir.write('p/b.yaml', 'domain: [\n');
      dir.write('p/c.yaml', TABLE.replace('domain: a', 'domain: c').replace('table', 'none'));
      dir.write('p/table.yaml', `${'a'.repeat(64)}: acme\n`);
      return [dir.join('p')];
    },
  ],
  [
    'links like those of Kubernetes, and a broken link',
    () => {
      dir.write('p/..1/a.yaml', 'domain: a\n');
      symlinkSync('..1', dir.join('p/..data'));
      symlinkSync('..data/a.yaml', dir.join('p/a.yaml'));
      symlinkSync('nowhere', dir.join('p/b.yaml'));
      return [dir.join('p')];
    },
  ],
  [
    'the layout of the reference',
    () => {
      dir.write('p/config/a.yaml', 'domain: a\n');
      dir.write('p/config.yaml', 'domain: b\n');
      mkdirSync(dir.join('p/config/sub'));
      dir.write('p/config/sub/c', 'domain: c\n');
      return [{ directory: dir.join('p/config'), setting: 'X', beside: true, ignoreDotFiles: false }];
    },
  ],
];

test.each(PLACES)('the fingerprint is that of the files until they change: %s', (_name, make) => {
  const places = make();
  const { fingerprint, files } = loadPolicies(places);
  const now = (): string => runToCompletion(fingerprintSteps(places, files));
  expect(now()).toBe(fingerprint);
  for (const file of files) {
    mkdirSync(dirname(file), { recursive: true });
    rmSync(file, { force: true });
    writeFileSync(file, 'domain: other\n');
    expect(now()).not.toBe(fingerprint);
  }
});

test('a file that is written to is told from a file that another one replaces', () => {
  const file = dir.write('rows.csv', 'tenant,plan\n');
  const before = fileIdentity(file, true);
  expect(isWrittenInPlace(before, fileIdentity(file, true))).toBe(false);
  appendFileSync(file, 'acme,gold\n');
  expect(isWrittenInPlace(before, fileIdentity(file, true))).toBe(true);
  renameSync(dir.write('new.csv', 'tenant,plan\n'), file);
  expect(isWrittenInPlace(before, fileIdentity(file, true))).toBe(false);
  rmSync(file);
  expect(isWrittenInPlace(before, fileIdentity(file, true))).toBe(false);
});
