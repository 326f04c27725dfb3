import { fingerprintSteps } from '../config/files/fingerprint.js';
import { runInTurns } from '../runtime/turns.js';
import { loadNamedFile, type NamedFile, readNamedFile } from './named-file.js';

/** Polling interval in milliseconds. */
const POLL_MS = 1000;

/** Receives the content of all files, in their order, or the Error of the first file that cannot be read. */
type Listener = (read: readonly Buffer[] | Error) => void;

/**
 * Reads a few files that settings name, and reads them again after each change: a write, a replacement, or a new target
 * of a symbolic link.
 */
export class FileChanges {
  readonly #files: readonly NamedFile[];
  #fingerprint = '';
  #listener: Listener | undefined;
  #poll: NodeJS.Timeout | undefined;
  /** The latest read. Reads run one after the other. */
  #lastReading: Promise<void> = Promise.resolve();
  /** A read that has not started yet, and that all current calls of {@link refresh} share. */
  #nextReading: Promise<void> | undefined;

  constructor(files: readonly NamedFile[]) {
    this.#files = files;
  }

  /** Reads all files synchronously, as a start does. Throws an Error that names the variable and the file. */
  readNow(): readonly Buffer[] {
    return this.#files.map(({ variable, path, maxBytes }) => readNamedFile(variable, path, maxBytes));
  }

  /**
   * Calls `listener` after a first asynchronous read, and again after each change. Reads never block the event loop,
   * even if a path leads to a pipe.
   */
  follow(listener: Listener): void {
    this.#listener = listener;
    void this.refresh();
    this.#poll = setInterval(() => void this.#compare(), POLL_MS).unref();
  }

  /** Reads all files again. Resolves after the listener was called. */
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
    this.#listener = undefined;
  }

  /** Returns a text that changes whenever one of the files does. */
  #currentFingerprint(): Promise<string> {
    const paths = this.#files.map(({ path }) => path);
    return runInTurns(fingerprintSteps(paths, []));
  }

  async #compare(): Promise<void> {
    if ((await this.#currentFingerprint()) !== this.#fingerprint) void this.refresh();
  }

  async #readAndNotify(): Promise<void> {
    if (this.#listener === undefined) return;
    // Take the fingerprint first, so that a change during the read is noticed afterwards.
    this.#fingerprint = await this.#currentFingerprint();
    const contents: Buffer[] = [];
    for (const read of await Promise.allSettled(this.#files.map(loadNamedFile))) {
      // Report the first error in the order of the files, whichever occurs first, so that the message stays the same.
      if (read.status === 'rejected') {
        this.#listener?.(read.reason as Error);
        return;
      }
      contents.push(read.value);
    }
    this.#listener?.(contents);
  }
}
