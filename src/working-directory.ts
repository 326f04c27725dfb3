import { isAbsolute, resolve } from 'node:path';

/**
 * Where a relative path was looked for, as a part of a sentence that begins with a colon; '' for an absolute one, which
 * says so itself.
 */
export function whereLooked(path: string): string {
  if (isAbsolute(path)) return '';
  return `: it was looked for in the working directory "${process.cwd()}", as "${resolve(path)}"`;
}
