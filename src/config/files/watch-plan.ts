import { lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { type PolicyPlace, walkLayout } from './policy-paths.js';

/** Tells whether a change of this name in a directory may change the policies. */
export type NameFilter = (name: string) => boolean;

/** Maximum number of links followed from one path, the same as on Linux. */
const MAX_LINKS = 40;

/**
 * The directories to watch so that no change of a configuration is missed, each with the names that count. Directories
 * are watched instead of files, because an edit may replace a file. They include the directories of links on the way,
 * which Kubernetes and release tools swap. For a missing path, the nearest existing directory is watched.
 */
export class WatchPlan {
  private readonly filters = new Map<string, NameFilter[]>();
  private readonly names = new Map<string, Set<string>>();
  /** Visited paths, and whether each of them exists. */
  private readonly visited = new Map<string, boolean>();

  /** Adds a place and the files that may appear in it. Yields after every few files. */
  *addPlace(place: PolicyPlace): Generator<void, void> {
    if (typeof place === 'string') {
      this.addFile(place);
      if (isDirectory(place)) this.filter(resolve(place), (name) => /\.ya?ml$/.test(name));
      return;
    }
    const directory = resolve(place.directory);
    this.addFile(directory);
    if (place.beside) {
      const prefix = `${basename(directory)}.`;
      this.filter(dirname(directory), (name) => name.startsWith(prefix));
    }
    for (const each of yield* directoriesOf(place)) {
      this.addFile(each);
      this.filter(resolve(each), (name) => !place.ignoreDotFiles || !name.startsWith('.'));
    }
  }

  /** Adds a file, or any other single path. */
  addFile(file: string): void {
    const path = resolve(file);
    this.visit(path, MAX_LINKS);
    this.name(path);
  }

  /** The directories to watch. */
  get directories(): Iterable<string> {
    return new Set([...this.names.keys(), ...this.filters.keys()]);
  }

  /** Tells whether a change of `name` in a directory counts. */
  counts(directory: string, name: string): boolean {
    if (this.names.get(directory)?.has(name) === true) return true;
    return this.filters.get(directory)?.some((filter) => filter(name)) === true;
  }

  /** Finds links and missing directories on the way to a path. Returns whether the path exists. */
  private visit(path: string, links: number): boolean {
    const known = this.visited.get(path);
    if (known !== undefined) return known;
    const parent = dirname(path);
    if (parent === path) return true;
    // Mark the path as missing first, so that a circular link counts as missing.
    this.visited.set(path, false);
    const there = this.visit(parent, links) && this.look(path, parent, links);
    this.visited.set(path, there);
    return there;
  }

  private look(path: string, parent: string, links: number): boolean {
    try {
      const stats = lstatSync(path, { throwIfNoEntry: false });
      if (stats?.isSymbolicLink() === false) return true;
      this.name(path);
      if (stats === undefined || links === 0) return false;
      return this.visit(resolve(realpathSync.native(parent), readlinkSync(path)), links - 1);
    } catch {
      return false;
    }
  }

  private name(path: string): void {
    const directory = dirname(path);
    const names = this.names.get(directory);
    if (names === undefined) this.names.set(directory, new Set([basename(path)]));
    else names.add(basename(path));
  }

  private filter(directory: string, filter: NameFilter): void {
    const filters = this.filters.get(directory);
    if (filters === undefined) this.filters.set(directory, [filter]);
    else filters.push(filter);
  }
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function* directoriesOf(place: Exclude<PolicyPlace, string>): Generator<void, readonly string[]> {
  try {
    return (yield* walkLayout(place)).directories;
  } catch {
    return [];
  }
}
