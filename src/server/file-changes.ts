import { PolicyWatcher } from '../config/files/policy-watcher.js';
import { loadNamedFile, type NamedFile, readNamedFile } from './settings/named-file.js';

/** Files that belong together come one after the other: how long to wait for the next. Milliseconds. */
const DEBOUNCE_MS = 200;
/** For file systems that tell of no changes. Milliseconds. */
const POLL_MS = 5000;

/** Takes what was read of all files, in their order, or the Error that one of them cannot be read for. */
type Listener = (read: readonly Buffer[] | Error) => void;

/**
 * Reads a few files that settings name, and reads them again when they change, however that comes about: written,
 * replaced, or a link that leads elsewhere.
 */
export class FileChanges {
  readonly #files: readonly NamedFile[];
  readonly #watcher: PolicyWatcher;
  #fingerprint = '';
  #listener: Listener | undefined;
  #debounce: NodeJS.Timeout | undefined;
  #poll: NodeJS.Timeout | undefined;
  /** The latest reading; each begins when the one before it has ended. */
  #lastReading: Promise<void> = Promise.resolve();
  /** A reading that has not begun, and so serves all who ask for one. */
  #nextReading: Promise<void> | undefined;

  constructor(files: readonly NamedFile[]) {
    this.#files = files;
    this.#watcher = new PolicyWatcher(
      files.map(({ path }) => path),
      () => this.#onChange(),
    );
  }

  /** Reads all files at once, as a start does. Throws an Error that names the variable and the file. */
  readNow(): readonly Buffer[] {
    return this.#files.map(({ variable, path, maxBytes }) => readNamedFile(variable, path, maxBytes));
  }

  /**
   * Calls `listener` soon, for what has changed since the files were read, and after each change from now on. Whatever
   * lies at their paths, nothing waits for it.
   */
  follow(listener: Listener): void {
    this.#listener = listener;
    void this.refresh();
    this.#poll = setInterval(() => {
      this.#watcher.arm([]);
      if (this.#watcher.fingerprint([]) !== this.#fingerprint) void this.refresh();
    }, POLL_MS).unref();
  }

  /** Reads all files anew; resolves when the listener was told. */
  refresh(): Promise<void> {
    if (this.#nextReading === undefined) {
      this.#nextReading = this.#lastReading.then(() => {
        this.#nextReading = undefined;
        return this.#readAndNotify();
      });
      this.#lastReading = this.#nextReading;
    }
    return this.#nextReading;
  }

  close(): void {
    clearInterval(this.#poll);
    clearTimeout(this.#debounce);
    this.#listener = undefined;
    this.#watcher.close();
  }

  #onChange(): void {
    if (this.#listener === undefined) return;
    clearTimeout(this.#debounce);
    this.#debounce = setTimeout(() => void this.refresh(), DEBOUNCE_MS).unref();
  }

  async #readAndNotify(): Promise<void> {
    if (this.#listener === undefined) return;
    // Watchers and fingerprint first: a change that comes while files are read is then seen afterwards.
    this.#watcher.arm([]);
    this.#fingerprint = this.#watcher.fingerprint([]);
    const contents: Buffer[] = [];
    for (const read of await Promise.allSettled(this.#files.map(loadNamedFile))) {
      // Of several faults the first in their order, whichever is found first: it is told once, and must not change.
      if (read.status === 'rejected') {
        this.#listener?.(read.reason as Error);
        return;
      }
      contents.push(read.value);
    }
    this.#listener?.(contents);
  }
}
