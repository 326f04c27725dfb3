import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { printableJson } from '../../printable.js';
import { isSameFile, writeFiles } from '../../written-files.js';
import type { ReplayReport } from './report.js';

/** Returns the report as JSON that is safe for terminals. */
export function jsonReport(report: ReplayReport): string {
  return `${printableJson(report, 2)}\n`;
}

/**
 * Returns an error message if a report cannot be written to `path`, for example because its folder does not exist.
 * `keep` are the input files, which are never overwritten. Call it before the work begins.
 */
export function targetProblem(path: string, keep: readonly string[]): string | undefined {
  if (existsSync(path) && !statSync(path).isFile())
    return `"${path}" is not a regular file; choose another path for the report`;
  if (keep.some((input) => isSameFile(input, path)))
    return `"${path}" is an input file and is never overwritten; choose another path for the report`;
  const folder = dirname(path);
  try {
    if (!statSync(folder).isDirectory())
      return `"${folder}" is not a folder; choose another path for the report "${path}"`;
    accessSync(dirname(existsSync(path) ? realpathSync(path) : path), constants.W_OK);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
      ? `the folder "${folder}" of the report "${path}" does not exist; create the folder, or choose another path`
      : `weir has no permission to write to the folder "${folder}" of the report "${path}"; check its owner and mode`;
  }
  return undefined;
}

/**
 * Writes a report to a temporary file and renames it, so that a full disk leaves an older report in place. Replaces the
 * target of a link, not the link. Returns an error message if the report cannot be written.
 */
export function writeReport(path: string, content: string, keep: readonly string[]): string | undefined {
  const invalid = targetProblem(path, keep);
  if (invalid !== undefined) return invalid;
  const target = existsSync(path) ? realpathSync(path) : path;
  const file = { path: basename(target), content, note: '' };
  const problem = writeFiles(dirname(target), [file], '', { force: true, keep });
  return problem && `the report "${path}" was not written: ${problem}`;
}
