import { isAbsolute, normalize, resolve } from 'node:path';

/**
 * Returns the directory of a relative path, as part of a message, beginning with a colon. Returns
 * '' for an absolute path.
 */
export function workingDirectoryHint(path: string): string {
  if (isAbsolute(path)) return '';
  try {
    return `: the path is relative to the working directory "${process.cwd()}", so weir tried "${resolve(path)}"`;
  } catch (error) {
    if (!isWorkingDirectoryGone(error)) throw error;
    return ': the path is relative to the working directory, which was removed; restart weir in an existing directory';
  }
}

/** Returns whether an error, which may come from a thread, means that the working directory was removed. */
export function isWorkingDirectoryGone(error: unknown): boolean {
  return error instanceof Error && error.message.endsWith('uv_cwd');
}

/** The reason why a thread ended. Node.js cannot start threads if the working directory was removed. */
export function threadError(error: Error): Error {
  if (!isWorkingDirectoryGone(error)) return error;
  return new Error('the working directory of weir was removed; restart weir in an existing directory');
}

/** Returns a path for comparisons: absolute, or unchanged if the working directory was removed. */
export function comparablePath(path: string): string {
  try {
    return resolve(path);
  } catch (error) {
    if (!isWorkingDirectoryGone(error)) throw error;
    return normalize(path);
  }
}
