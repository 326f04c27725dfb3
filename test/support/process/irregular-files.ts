import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';

/** Unusual kinds of files where a regular file is expected, with functions that replace a file with them. */
export const IRREGULAR_FILES = {
  'a pipe without a writer': (path: string) => {
    execFileSync('mkfifo', [path]);
  },
  'an endless device': (path: string) => symlinkSync('/dev/zero', path),
  'a file of a gigabyte': (path: string) => {
    writeFileSync(path, '');
    truncateSync(path, 2 ** 30);
  },
  'a directory': (path: string) => {
    mkdirSync(path);
  },
} as const;

export type IrregularFile = keyof typeof IRREGULAR_FILES;

/** Replaces a file with an unusual kind of file, atomically as renaming does. */
export function replaceWith(path: string, what: IrregularFile): void {
  const made = `${path}.new`;
  IRREGULAR_FILES[what](made);
  rmSync(path, { force: true });
  renameSync(made, path);
}
