import { existsSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { printableJson } from '../../printable.js';
import { writeFiles } from '../../written-files.js';
import type { ReplayReport } from './report.js';

/** Returns the report as JSON that is safe for terminals. */
export function jsonReport(report: ReplayReport): string {
  return `${printableJson(report, 2)}\n`;
}

/**
 * Writes a report to a temporary file and renames it, so that a full disk leaves an older report in place. Replaces the
 * target of a link, not the link. Returns an error message if the report cannot be written, if `path` is not a regular
 * file, or if it is one of the input files `keep`.
 */
export function writeReport(path: string, content: string, keep: readonly string[]): string | undefined {
  let target = path;
  if (existsSync(path)) {
    if (!statSync(path).isFile())
      return `"${path}" is not a regular file; choose another path for the report`;
    target = realpathSync(path);
  }
  const file = { path: basename(target), content, note: '' };
  const problem = writeFiles(dirname(target), [file], '', { force: true, keep });
  return problem && `the report was not written: ${problem}`;
}
