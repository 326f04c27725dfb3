import { fingerprintSteps } from '../config/files/fingerprint.js';
import { runInTurns } from '../runtime/turns.js';
import { loadNamedFile, type NamedFile, readNamedFile } from './named-file.js';
import { StartError } from './start-error.js';

/** Polling interval in milliseconds. */
const POLL_MS = 1000;

/** Receives the content of files after each read. */
interface ContentListener<Content> {
  /** Called after each valid read, even if nothing has changed. */
  read(content: Content, previous: Content): void;
  /** Called if the files cannot be read or are invalid, once for the same error in succession. */
  failed(sentence: string): void;
}

/**
 * The content of a few files that settings name, which are read again after each change: a write, a replacement, or a
 * new target of a symbolic link. While the files are invalid, the previous content stays in effect.
 */
export class FollowedFiles<Content> {
  /** The latest valid content. */
  content: Content;
  readonly #files: readonly NamedFile[];
  readonly #parse: (texts: readonly string[], previous?: Content) => Content;
  #failure = '';
  #fingerprint = '';
  #listener: ContentListener<Content> | undefined;
  #poll: NodeJS.Timeout | undefined;
  /** The latest read. Reads run one after the other. */
  #lastReading: Promise<void> = Promise.resolve();
  /** A read that has not started yet, and that all current calls of {@link refresh} share. */
  #nextReading: Promise<void> | undefined;

  /**
   * Reads all files synchronously, as a start does. `parse` throws an Error with a sentence if they are invalid. Throws
   * {@link StartError} with this sentence, or with one that names the variable and the file that cannot be read. With
   * `previous`, the content of another process, that content stays in effect instead.
   */
  constructor(
    files: readonly NamedFile[],
    parse: (texts: readonly string[], previous?: Content) => Content,
    previous?: Content,
  ) {
    this.#files = files;
    this.#parse = parse;
    try {
      this.content = parse(
        files.map(({ variable, path, maxBytes }) => readNamedFile(variable, path, maxBytes).toString()),
      );
    } catch (error) {
      if (previous === undefined) throw new StartError([(error as Error).message]);
      this.content = previous;
    }
  }

  /**
   * Tells `listener` about a first asynchronous read, and about each change. Reads never block the event loop, even if
   * a path leads to a pipe.
   */
  follow(listener: ContentListener<Content>): void {
    this.#listener = listener;
    void this.refresh();
    this.#poll = setInterval(() => void this.#compare(), POLL_MS).unref();
  }

  /** Reads all files again. Resolves after the listener was called. */
  refresh(): Promise<void> {
    if (this.#nextReading === undefined) {
      const read = (): Promise<void> => {
        this.#nextReading = undefined;
        return this.#readAndNotify();
      };
      // A listener that has thrown an error does not end the reads.
      this.#nextReading = this.#lastReading.then(read, read);
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
    // Take the fingerprint first, so that a change during the read is noticed afterwards.
    this.#fingerprint = await this.#currentFingerprint();
    const previous = this.content;
    try {
      const texts: string[] = [];
      for (const read of await Promise.allSettled(this.#files.map(loadNamedFile))) {
        // Report the first error in the order of the files, whichever occurs first, so that the message stays the same.
        if (read.status === 'rejected') throw read.reason;
        texts.push(read.value.toString());
      }
      this.content = this.#parse(texts, previous);
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.#failure) this.#listener?.failed(message);
      this.#failure = message;
      return;
    }
    this.#failure = '';
    this.#listener?.read(this.content, previous);
  }
}
