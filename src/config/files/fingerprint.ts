import { statSync } from 'node:fs';
import { expandPaths, type PolicyPlace, pathOfPlace } from './policy-paths.js';

/** Number of files after which the event loop gets a turn. Each file takes a few system calls. */
const FILES_PER_TURN = 64;

/**
 * Returns a string that changes whenever a file or directory of a configuration is replaced, written to, added or
 * removed. `identities` are those of its places. `files` maps each file, in load order, to its identity.
 */
export function fingerprintOf(identities: readonly string[], files: ReadonlyMap<string, string>): string {
  return [...identities, ...[...files].flat()].join('|');
}

/**
 * Computes {@link fingerprintOf} for the current files and yields after every few of them. `files` are the files that
 * were read last.
 */
export function* fingerprintSteps(
  places: readonly PolicyPlace[],
  files: readonly string[],
): Generator<void, string> {
  const identities = places.map((place) => fileIdentity(pathOfPlace(place), true));
  const listed = (yield* expandPaths(places, [])).map(({ file }) => file);
  const now = new Map<string, string>();
  for (const file of new Set([...listed, ...files])) {
    if (now.size % FILES_PER_TURN === FILES_PER_TURN - 1) yield;
    now.set(file, fileIdentity(file, true));
  }
  return fingerprintOf(identities, now);
}

/** Returns the identity of a file, with its times and size if `content` is true; '' if the file does not exist. */
export function fileIdentity(path: string, content: boolean): string {
  try {
    const stats = statSync(path, { bigint: true });
    const identity = `${stats.dev}:${stats.ino}`;
    // The times of a directory also change with files that are not policies.
    return content && !stats.isDirectory()
      ? `${identity}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`
      : identity;
  } catch {
    return '';
  }
}

/** Tells from an identity with content whether the file was written to in the last `ms` milliseconds. */
export function isFresh(identity: string, ms: number): boolean {
  const [, , , mtimeNanos] = identity.split(':');
  return mtimeNanos !== undefined && Date.now() - Number(mtimeNanos) / 1e6 < ms;
}

/** Tells from two identities of a path whether its file was written to, and not replaced by another file. */
export function isWrittenInPlace(before: string, after: string): boolean {
  const inode = (identity: string): string => identity.split(':', 2).join(':');
  return before !== after && inode(before) === inode(after);
}
