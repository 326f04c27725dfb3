import { statSync } from 'node:fs';
import { expandPathsInSteps, type PolicyPlace, pathOfPlace } from './policy-paths.js';

/** After so many files the event loop has a turn: each is a few system calls. */
export const FILES_PER_TURN = 64;

/**
 * Changes whenever a file or directory of a configuration is replaced, written to, added or removed. `identities` are
 * those of its places; `files` all that is or would be read, each once.
 */
export function fingerprintOf(
  identities: readonly string[],
  files: readonly string[],
  identity: (file: string) => string,
): string {
  return [...identities, ...files.flatMap((file) => [file, identity(file)])].join('|');
}

/** {@link fingerprintOf} what lies there now; yields after every few files. `files` are those last read. */
export function* fingerprintSteps(
  places: readonly PolicyPlace[],
  files: readonly string[],
): Generator<void, string> {
  const identities = places.map((place) => fileIdentity(pathOfPlace(place), true));
  const listed = (yield* expandPathsInSteps(places, [])).map(({ file }) => file);
  const known = new Map<string, string>();
  for (const file of [...listed, ...files]) {
    if (known.has(file)) continue;
    if (known.size % FILES_PER_TURN === FILES_PER_TURN - 1) yield;
    known.set(file, fileIdentity(file, true));
  }
  return fingerprintOf(identities, [...known.keys()], (file) => known.get(file) ?? '');
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
