import { isAbsolute, normalize, resolve } from 'node:path';

/**
 * Where a relative path was looked for, as a part of a sentence that begins with a colon; '' for an absolute one, which
 * says so itself.
 */
export function whereLooked(path: string): string {
  if (isAbsolute(path)) return '';
  try {
    return `: it was looked for in the working directory "${process.cwd()}", as "${resolve(path)}"`;
  } catch (error) {
    if (!isWorkingDirectoryGone(error)) throw error;
    return ': it is looked for in the working directory, which was removed, so start weir again in one that is there';
  }
}

/** Whether an error, also one of a thread, says that a relative path has no meaning any more. */
export function isWorkingDirectoryGone(error: unknown): boolean {
  return error instanceof Error && error.message.endsWith('uv_cwd');
}

/** Why a thread ended: Node.js starts none where the working directory was removed. */
export function threadError(error: Error): Error {
  if (!isWorkingDirectoryGone(error)) return error;
  return new Error('the working directory of weir was removed; start weir again in one that is there');
}

/** A path that can be compared with others: absolute, or as it is where the working directory was removed. */
export function comparablePath(path: string): string {
  try {
    return resolve(path);
  } catch (error) {
    if (!isWorkingDirectoryGone(error)) throw error;
    return normalize(path);
  }
}
