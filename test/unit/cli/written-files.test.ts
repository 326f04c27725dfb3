import { readdirSync, readFileSync } from 'node:fs';
import { beforeEach, expect, test } from '@jest/globals';
import { writeFiles } from '../../../src/cli/init.js';
import { TempDir } from '../../support/process/temp-dir.js';

let folder: TempDir;
beforeEach(() => {
  folder = new TempDir();
});

const FILE = { path: 'policies/below/rl.yaml', content: 'domain: d\n', note: '' };

test('writes nothing if one of the files exists', () => {
  folder.write('rl.yaml', 'old');
  const files = [FILE, { ...FILE, path: 'rl.yaml' }];
  expect(writeFiles(folder.path, files)).toMatch(/already contains rl.yaml; choose another folder$/);
  expect([readdirSync(folder.path), readFileSync(folder.join('rl.yaml'), 'utf8')]).toEqual([
    ['rl.yaml'],
    'old',
  ]);
});

test('writing fails if a file is in the place of a folder', () => {
  folder.write('policies', 'old');
  expect(writeFiles(folder.path, [FILE])).toMatch(/^the files cannot be written: /);
});
