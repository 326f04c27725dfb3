import { lstatSync, mkdirSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';

/** A file to be written. */
export interface WrittenFile {
  /** Path relative to the target directory. */
  readonly path: string;
  readonly content: string | Uint8Array;
  /** Permissions of a new file; by default, those of the process. */
  readonly mode?: number;
  /** Description for people: `image and 3 variables changed`. */
  readonly note: string;
}

/**
 * Writes files below a directory, all or none. Returns an error message with `remedy` if a file exists and `force` is
 * not set, or if a link leads out of the directory. A replaced file becomes a new file: it gets the permissions of a
 * new file, and the target of a former link is unchanged.
 */
export function writeFiles(
  directory: string,
  files: readonly WrittenFile[],
  remedy: string,
  { force = false }: { readonly force?: boolean } = {},
): string | undefined {
  const outside = files.find(({ path }) => leadsOut(directory, dirname(join(directory, path))));
  if (outside !== undefined) {
    return (
      `no files were written, because a symbolic link places "${join(directory, outside.path)}" outside ` +
      `"${directory}"; choose another directory`
    );
  }
  const existing = files.filter(({ path }) => exists(join(directory, path))).map(({ path }) => path);
  if (existing.length > 0 && !force) {
    return `no files were written, because "${directory}" already contains ${existing.join(', ')}; ${remedy}`;
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

/** Writes to a temporary file and renames it. Overwriting the file would keep its permissions. */
function replaceFile(file: string, content: WrittenFile['content'], mode: number): void {
  const temporary = `${file}.${process.pid}.new`;
  try {
    // In a container, a process that was killed while it wrote often had the same process ID.
    rmSync(temporary, { force: true });
    writeFileSync(temporary, content, { flag: 'wx', mode });
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/**
 * Creates a directory and those above it, unless they exist. Does not use `recursive`, because it never returns for a
 * path where no directory can be created, as in /proc.
 */
function makeDirectory(path: string, mode = 0o777): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return;
  if (dirname(path) !== path) makeDirectory(dirname(path), mode);
  try {
    mkdirSync(path, { mode });
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
