import { statSync } from 'node:fs';
import { expandPathsInSteps, type PolicyPlace, pathOfPlace } from './policy-paths.js';

/** After so many files the event loop has a turn: each is a few system calls. */
export const FILES_PER_TURN = 64;

/**
 * Changes whenever a file or directory of a configuration is replaced, written to, added or removed. `identities` are
 * those of its places; `files` has those of all that is or would be read, in that order.
 */
export function fingerprintOf(identities: readonly string[], files: ReadonlyMap<string, string>): string {
  return [...identities, ...[...files].flat()].join('|');
}

/** {@link fingerprintOf} what lies there now; yields after every few files. `files` are those last read. */
export function* fingerprintSteps(
  places: readonly PolicyPlace[],
  files: readonly string[],
): Generator<void, string> {
  const identities = places.map((place) => fileIdentity(pathOfPlace(place), true));
  const listed = (yield* expandPathsInSteps(places, [])).map(({ file }) => file);
  const now = new Map<string, string>();
  for (const file of new Set([...listed, ...files])) {
    if (now.size % FILES_PER_TURN === FILES_PER_TURN - 1) yield;
    now.set(file, fileIdentity(file, true));
  }
  return fingerprintOf(identities, now);
}

/** What tells a file from another, with its times and size if asked; '' if there is none. */
export function fileIdentity(path: string, content: boolean): string {
  try {
    const stats = statSync(path, { bigint: true });
    const identity = `${stats.dev}:${stats.ino}`;
    // A directory's times change with files that are none of ours.
    return content && !stats.isDirectory()
      ? `${identity}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`
      : identity;
  } catch {
    return '';
  }
}
