import { PolicyWatcher } from '../config/files/policy-watcher.js';

/** Files that belong together come one after the other: how long to wait for the next. Milliseconds. */
const DEBOUNCE_MS = 200;
/** For file systems that tell of no changes. Milliseconds. */
const POLL_MS = 5000;

/** Tells of changes of a few files, however they come there: written, replaced, or a link that leads elsewhere. */
export class FileChanges {
  readonly #watcher: PolicyWatcher;
  #fingerprint = '';
  #listener: (() => void) | undefined;
  #debounce: NodeJS.Timeout | undefined;
  #poll: NodeJS.Timeout | undefined;

  constructor(files: readonly string[]) {
    this.#watcher = new PolicyWatcher(files, () => this.#onChange());
  }

  /** Calls `listener` now, for what has changed since the files were read, and after each change from now on. */
  follow(listener: () => void): void {
    this.#listener = listener;
    this.#tell();
    this.#poll = setInterval(() => {
      this.#watcher.arm([]);
      if (this.#watcher.fingerprint([]) !== this.#fingerprint) this.#tell();
    }, POLL_MS).unref();
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
    this.#debounce = setTimeout(() => this.#tell(), DEBOUNCE_MS).unref();
  }

  #tell(): void {
    // Watchers and fingerprint first: a change that comes while files are read is then seen afterwards.
    this.#watcher.arm([]);
    this.#fingerprint = this.#watcher.fingerprint([]);
    this.#listener?.();
  }
}
