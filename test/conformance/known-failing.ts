import { readFileSync } from 'node:fs';

/**
 * Parses a list of cases that may fail, with lines `case: reason` and comments after `#`. Throws for a line without a
 * reason and for a repeated case.
 */
export function readKnownFailing(path: string): Map<string, string> {
  const known = new Map<string, string>();
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [, name, reason] = /^(\S+): (.+)$/.exec(line) ?? [];
    if (name === undefined || reason === undefined) throw new Error(`${path}: no reason in "${line}"`);
    if (known.has(name)) throw new Error(`${path}: ${name} is listed twice`);
    known.set(name, reason);
  }
  return known;
}
