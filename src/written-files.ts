import { lstatSync, mkdirSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';

/** A file to be written. */
export interface WrittenFile {
  /** Below the directory that files are written to. */
  readonly path: string;
  readonly content: string | Uint8Array;
  /** Permissions of a new file; what the process gives by default when left out. */
  readonly mode?: number;
  /** A clause for people: `image and 3 variables changed`. */
  readonly note: string;
}

/**
 * Writes files below a directory, all or none: a sentence with `remedy` where one is there already and `force` is not
 * set, where one would take the place of a file of `keep`, which is never written over, or where a link would lead out
 * of the directory. A file that is replaced is
 * another one then: its permissions are those of a new file, and what a link led to stays.
 */
export function writeFiles(
  directory: string,
  files: readonly WrittenFile[],
  remedy: string,
  { force = false, keep = [] }: { readonly force?: boolean; readonly keep?: readonly string[] } = {},
): string | undefined {
  const kept = new Set(keep.map(realPath));
  const own = files.find(({ path }) => kept.has(realPath(join(directory, path))));
  if (own !== undefined) {
    return `"${join(directory, own.path)}" is a file that was read and is never written over; name another directory`;
  }
  const outside = files.find(({ path }) => leadsOut(directory, dirname(join(directory, path))));
  if (outside !== undefined) {
    return (
      `nothing was written, as a link leads from "${join(directory, outside.path)}" out of "${directory}"; ` +
      'name another directory'
    );
  }
  const there = files.filter(({ path }) => isThere(join(directory, path))).map(({ path }) => path);
  if (there.length > 0 && !force) {
    return `nothing was written, as "${directory}" has ${there.join(', ')} already; ${remedy}`;
  }
  try {
    for (const { path, content, mode = 0o666 } of files) {
      makeDirectory(dirname(resolve(directory, path)));
      const file = join(directory, path);
      if (force) replaceFile(file, content, mode);
      else writeFileSync(file, content, { flag: 'wx', mode });
    }
    return undefined;
  } catch (error) {
    return `the files cannot be written: ${(error as Error).message}`;
  }
}

/** Writes beside the file and renames: a file that is written over would keep its permissions. */
function replaceFile(file: string, content: WrittenFile['content'], mode: number): void {
  const beside = `${file}.${process.pid}.new`;
  try {
    writeFileSync(beside, content, { flag: 'wx', mode });
    renameSync(beside, file);
  } catch (error) {
    rmSync(beside, { force: true });
    throw error;
  }
}

/** Not with `recursive`, which tries for ever where there can be no directory, as in /proc. */
function makeDirectory(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return;
  if (dirname(path) !== path) makeDirectory(dirname(path));
  mkdirSync(path);
}

/** Where a file lies, or would, links followed: by another name it is the same file. */
function realPath(file: string): string {
  const path = resolve(file);
  try {
    return realpathSync(path);
  } catch {
    return dirname(path) === path ? path : join(realPath(dirname(path)), basename(path));
  }
}

/** Whether a folder named below a directory lies elsewhere, through a link. */
function leadsOut(directory: string, folder: string): boolean {
  const path = relative(realPath(directory), realPath(folder));
  return path === '..' || path.startsWith(`..${sep}`);
}

/** Whether there is a file, or a link that leads nowhere; what is below no directory is not. */
function isThere(file: string): boolean {
  try {
    return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

/** What was written, for people. */
export function writtenText(directory: string, files: readonly WrittenFile[]): string {
  const width = Math.max(...files.map(({ path }) => path.length));
  const lines = files.map(({ path, note }) => `  ${path.padEnd(width)}  ${note}\n`);
  return `Written to ${directory}\n${lines.join('')}`;
}
