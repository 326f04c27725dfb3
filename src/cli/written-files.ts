import { lstatSync, mkdirSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';

/** A file to be written. */
export interface WrittenFile {
  /** Path relative to the target directory. */
  readonly path: string;
  readonly content: string;
  /** Description for people: `a policy with example limits`. */
  readonly note: string;
}

/**
 * Writes new files below a directory, all or none. Returns an error message if a file exists, or if a link leads out of
 * the directory.
 */
export function writeFiles(directory: string, files: readonly WrittenFile[]): string | undefined {
  const outside = files.find(({ path }) => leadsOut(directory, dirname(join(directory, path))));
  if (outside !== undefined) {
    return (
      `no files were written, because a symbolic link places "${join(directory, outside.path)}" outside ` +
      `"${directory}"; choose another directory`
    );
  }
  const existing = files.filter(({ path }) => exists(join(directory, path))).map(({ path }) => path);
  if (existing.length > 0) {
    return (
      `no files were written, because "${directory}" already contains ${existing.join(', ')}; choose another ` +
      'folder'
    );
  }
  try {
    for (const { path, content } of files) {
      makeDirectory(dirname(resolve(directory, path)));
      writeFileSync(join(directory, path), content, { flag: 'wx' });
    }
    return undefined;
  } catch (error) {
    return `the files cannot be written: ${(error as Error).message}`;
  }
}

/**
 * Creates a directory and those above it, unless they exist. Does not use `recursive`, because it never returns for a
 * path where no directory can be created, as in /proc.
 */
function makeDirectory(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return;
  if (dirname(path) !== path) makeDirectory(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    // Another process may have created it meanwhile.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
  }
}

/**
 * Returns the path of an existing or future file with all links resolved, so that different names of a file compare as
 * equal.
 */
function realPath(file: string): string {
  const path = resolve(file);
  try {
    return realpathSync(path);
  } catch {
    return dirname(path) === path ? path : join(realPath(dirname(path)), basename(path));
  }
}

/** Returns whether a folder below a directory is outside of it because of a link. */
function leadsOut(directory: string, folder: string): boolean {
  const path = relative(realPath(directory), realPath(folder));
  return path === '..' || path.startsWith(`..${sep}`);
}

/** Returns whether a file, or a broken link, exists. Returns false if the parent is not a directory. */
function exists(file: string): boolean {
  try {
    return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

/** Returns a list of the written files for people. */
export function writtenText(directory: string, files: readonly WrittenFile[]): string {
  const width = Math.max(...files.map(({ path }) => path.length));
  const lines = files.map(({ path, note }) => `  ${path.padEnd(width)}  ${note}\n`);
  return `Written to ${directory}\n${lines.join('')}`;
}
