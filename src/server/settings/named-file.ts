import { readFileSync } from 'node:fs';

/** Reads the file that a setting names. Throws an Error that names both, and says why it cannot be read. */
export function readNamedFile(variable: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(`${variable}: cannot read ${path}: ${(error as Error).message}`);
  }
}
