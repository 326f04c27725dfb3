import { chmodSync, linkSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { writeFiles } from '../../src/written-files.js';
import { TempDir } from '../support/process/temp-dir.js';

let folder: TempDir;
beforeEach(() => {
  folder = new TempDir();
});
afterEach(() => folder.remove());

const SECRET = { path: 'rl.env', content: 'REDIS_AUTH=geheim\n', mode: 0o600, note: '' };
const modeOf = (name: string): number => statSync(folder.join(name)).mode & 0o777;
const force = (): string | undefined => writeFiles(folder.path, [SECRET], 'remedy', { force: true });

test.each([0o644, 0o666, 0o400])(
  'a new file does not inherit mode %o from the file that it replaces',
  (mode) => {
    chmodSync(folder.write('rl.env', 'old'), mode);
    expect(force()).toBeUndefined();
    expect([readFileSync(folder.join('rl.env'), 'utf8'), modeOf('rl.env')]).toEqual([SECRET.content, 0o600]);
    expect(readdirSync(folder.path)).toEqual(['rl.env']);
  },
);

test('the target of a symbolic link and other hard links of the file do not change', () => {
  folder.write('elsewhere', 'old');
  symlinkSync('elsewhere', folder.join('rl.env'));
  expect(force()).toBeUndefined();
  expect([readFileSync(folder.join('elsewhere'), 'utf8'), modeOf('rl.env')]).toEqual(['old', 0o600]);
  linkSync(folder.join('rl.env'), folder.join('second'));
  expect(writeFiles(folder.path, [{ ...SECRET, content: 'new' }], 'remedy', { force: true })).toBeUndefined();
  expect(readFileSync(folder.join('second'), 'utf8')).toBe(SECRET.content);
});

test('writing fails if a folder has the name of the file, and leaves no temporary file', () => {
  folder.write('rl.env/inside', 'old');
  expect(force()).toMatch(/^the files cannot be written: /);
  expect(readdirSync(folder.path)).toEqual(['rl.env']);
});

test('files are not written outside of the directory through a link, but the directory may be a link', () => {
  folder.write('elsewhere/old', '');
  folder.write('out/old', '');
  symlinkSync('../elsewhere', folder.join('out/policies'));
  symlinkSync('elsewhere', folder.join('linked'));
  const files = [{ ...SECRET, path: 'policies/below/rl.env' }];
  for (const force of [false, true]) {
    expect(writeFiles(folder.join('out'), files, 'remedy', { force })).toMatch(
      /^no files were written, because a symbolic link places ".*\/below\/rl\.env" outside ".*\/out"; choose another/,
    );
  }
  expect(readdirSync(folder.join('elsewhere'))).toEqual(['old']);
  expect(writeFiles(folder.join('linked'), files, 'remedy')).toBeUndefined();
  expect(readdirSync(folder.join('elsewhere')).sort()).toEqual(['old', 'policies']);
});
