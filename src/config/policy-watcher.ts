import { type FSWatcher, statSync, watch } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { policyNames } from './policy-paths.js';

interface WatchedDirectory {
  /** Device and inode: another directory under the same name needs another watcher. */
  readonly identity: string;
  readonly watcher: FSWatcher;
}

/**
 * Watches everything a configuration is read from. Directories are watched, not files: an edit may replace the file, and
 * Kubernetes swaps the link `..data` beside it. Works as well as the file system tells of changes; {@link fingerprint} finds
 * what it does not tell.
 */
export class PolicyWatcher {
  private readonly paths: readonly string[];
  private readonly onChange: () => void;
  private readonly watched = new Map<string, WatchedDirectory>();
  /** Per directory the names whose changes count. */
  private names = new Map<string, ReadonlySet<string>>();

  /** `paths` as given to `loadPolicies`; `onChange` is called often, several times for one change too. */
  constructor(paths: readonly string[], onChange: () => void) {
    this.paths = paths;
    this.onChange = onChange;
  }

  /** Begins to watch what is not watched yet, or is another directory than before. `files` are those last read. */
  arm(files: readonly string[]): void {
    const names = new Map<string, Set<string>>();
    const add = (directory: string, name: string): void => {
      const known = names.get(directory);
      if (known === undefined) names.set(directory, new Set([name]));
      else known.add(name);
    };
    for (const file of [...this.paths, ...files]) {
      add(dirname(file), basename(file));
      if (isDirectory(file)) add(file, '');
    }
    this.names = names;
    for (const directory of this.watched.keys()) if (!names.has(directory)) this.unwatch(directory);
    for (const directory of names.keys()) this.watch(directory);
  }

  /** Changes whenever a file or directory of the configuration is replaced, written to, added or removed. */
  fingerprint(files: readonly string[]): string {
    const parts: string[] = [];
    for (const path of this.paths) {
      parts.push(identityOf(path, true));
      if (isDirectory(path)) {
        for (const name of namesIn(path)) parts.push(name, identityOf(join(path, name), true));
      }
    }
    for (const file of files) parts.push(identityOf(file, true));
    return parts.join('|');
  }

  close(): void {
    for (const directory of [...this.watched.keys()]) this.unwatch(directory);
  }

  private watch(directory: string): void {
    const identity = identityOf(directory, false);
    const known = this.watched.get(directory);
    if (known !== undefined) {
      if (known.identity === identity) return;
      this.unwatch(directory);
    }
    if (identity === '') return;
    try {
      const watcher = watch(directory, { persistent: false }, (_event, name) =>
        this.changed(directory, name),
      );
      // A directory that goes away, or too many watches on this machine: polling goes on.
      watcher.on('error', () => this.unwatch(directory));
      this.watched.set(directory, { identity, watcher });
    } catch {
      // As above.
    }
  }

  private unwatch(directory: string): void {
    this.watched.get(directory)?.watcher.close();
    this.watched.delete(directory);
  }

  private changed(directory: string, name: string | null): void {
    const names = this.names.get(directory);
    if (names === undefined) return;
    const counts =
      name === null ||
      names.has(name) ||
      name.startsWith('..') ||
      // A watched directory tells its own removal under its own name.
      name === basename(directory) ||
      (names.has('') && /\.ya?ml$/.test(name));
    if (counts) this.onChange();
  }
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function namesIn(directory: string): readonly string[] {
  try {
    return policyNames(directory);
  } catch {
    return [];
  }
}

/** What tells a file from another, with its times and size if asked; '' if there is none. */
function identityOf(path: string, content: boolean): string {
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
