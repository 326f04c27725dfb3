import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../process/tools.js';

/** Replaces the lines of a page from `begin` to before `end` with `part`, whose first line is `begin`. */
export function writePart(page: string, begin: string, end: string, part: string): void {
  const file = join(repositoryRoot, page);
  const before = readFileSync(file, 'utf8');
  const from = before.indexOf(begin);
  const to = before.indexOf(end);
  if (from < 0 || to < 0) {
    process.stderr.write(`${page} has no lines ${begin} and ${end}: left as it is\n`);
    return;
  }
  writeFileSync(file, `${before.slice(0, from)}${part}${before.slice(to)}`);
}
