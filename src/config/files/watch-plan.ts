import { lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { type PolicyPlace, walkLayout } from './policy-paths.js';

/** Whether a change of this name in a directory may change the policies. */
export type NameFilter = (name: string) => boolean;

/** Most links followed from one path to another: as many as Linux follows. */
const MAX_LINKS = 40;

/**
 * What to watch so that no change of a configuration is missed: directories, each with the names in it that count.
 * Directories are watched, not files, as an edit may replace the file. Beside those that hold files these are the ones
 * that hold a link on the way, which Kubernetes and releases swap, and where something is missing, the nearest
 * directory that is there.
 */
export class WatchPlan {
  private readonly filters = new Map<string, NameFilter[]>();
  private readonly names = new Map<string, Set<string>>();
  /** Paths looked at, and whether something is there. */
  private readonly visited = new Map<string, boolean>();

  /** Adds a place: its own name, and what may come to lie in it. Yields after every few files that lie there. */
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

  /** Adds a file, or any other path that counts by itself. */
  addFile(file: string): void {
    const path = resolve(file);
    this.visit(path, MAX_LINKS);
    this.name(path);
  }

  /** The directories to watch. */
  get directories(): Iterable<string> {
    return new Set([...this.names.keys(), ...this.filters.keys()]);
  }

  /** Whether a change of `name` in one of them counts. */
  counts(directory: string, name: string): boolean {
    if (this.names.get(directory)?.has(name) === true) return true;
    return this.filters.get(directory)?.some((filter) => filter(name)) === true;
  }

  /** Finds links and gaps on the way to a path; returns whether something is there. */
  private visit(path: string, links: number): boolean {
    const known = this.visited.get(path);
    if (known !== undefined) return known;
    const parent = dirname(path);
    if (parent === path) return true;
    // A link that leads back to itself is nothing.
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
