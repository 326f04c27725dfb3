import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

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
 * set, or where one would take the place of a file of `keep`, which is never written over.
 */
export function writeFiles(
  directory: string,
  files: readonly WrittenFile[],
  remedy: string,
  { force = false, keep = [] }: { readonly force?: boolean; readonly keep?: readonly string[] } = {},
): string | undefined {
  const kept = new Set(keep.map((file) => resolve(file)));
  const own = files.find(({ path }) => kept.has(resolve(directory, path)));
  if (own !== undefined) {
    return `"${join(directory, own.path)}" is a file that was read and is never written over; name another directory`;
  }
  const there = files.filter(({ path }) => existsSync(join(directory, path))).map(({ path }) => path);
  if (there.length > 0 && !force) {
    return `nothing was written, as "${directory}" has ${there.join(', ')} already; ${remedy}`;
  }
  try {
    for (const { path, content, mode = 0o666 } of files) {
      mkdirSync(dirname(join(directory, path)), { recursive: true });
      writeFileSync(join(directory, path), content, { flag: force ? 'w' : 'wx', mode });
    }
    return undefined;
  } catch (error) {
    return `the files cannot be written: ${(error as Error).message}`;
  }
}

/** A word of a command line, in quotes where a shell would take it for anything else. */
export function shellWord(text: string): string {
  return /^[\w./:@=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** What was written, for people. */
export function writtenText(directory: string, files: readonly WrittenFile[]): string {
  const width = Math.max(...files.map(({ path }) => path.length));
  const lines = files.map(({ path, note }) => `  ${path.padEnd(width)}  ${note}\n`);
  return `Written to ${directory}\n${lines.join('')}`;
}
