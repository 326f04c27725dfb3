import { readFileSync } from 'node:fs';
import { whereLooked } from '../../working-directory.js';

/** Reads the file that a setting names. Throws an Error that names both, says why it cannot be read, and what to do. */
export function readNamedFile(variable: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(`${variable}: cannot read ${path}: ${reasonOf(error as NodeJS.ErrnoException, path)}`);
  }
}

function reasonOf({ code, message }: NodeJS.ErrnoException, path: string): string {
  switch (code) {
    case 'ENOENT':
      return `the file does not exist${whereLooked(path)}; correct the path`;
    case 'EACCES':
      return 'this user may not read it; check the owner and the mode of the file and of its folders';
    case 'EISDIR':
      return 'it is a directory; name a file';
    default:
      return message;
  }
}
