import { fingerprintSteps } from '../config/files/fingerprint.js';
import { loadRegularFile, readRegularFile } from '../runtime/regular-file.js';
import { withoutAddressSecrets } from '../runtime/shown-address.js';
import { runInTurns } from '../runtime/turns.js';
import { workingDirectoryHint } from '../runtime/working-directory.js';
import { StartError } from './start-error.js';

/** Default maximum number of bytes of a file that a setting or an option names. */
export const MAX_NAMED_FILE_BYTES = 1024 * 1024;

/** A file, with the setting or option that names it. */
interface NamedFile {
  /** A variable such as GRPC_SERVER_TLS_CERT, or an option such as --ca. */
  readonly variable: string;
  readonly path: string;
  /** Maximum number of bytes. Larger files are an error. Default: {@link MAX_NAMED_FILE_BYTES}. */
  readonly maxBytes?: number;
}

/**
 * Reads the file that a setting names, synchronously. Throws an Error that names the setting and the file, the reason
 * and the remedy. Its cause is the error of the file system.
 */
export function readNamedFile(variable: string, path: string, maxBytes = MAX_NAMED_FILE_BYTES): Buffer {
  try {
    return readRegularFile(path, maxBytes);
  } catch (error) {
    throw unreadable(variable, path, error as NodeJS.ErrnoException);
  }
}

/** Reads a file like {@link readNamedFile}, but asynchronously, for a process that decides requests. */
export async function loadNamedFile({ variable, path, maxBytes }: NamedFile): Promise<Buffer> {
  try {
    return await loadRegularFile(path, maxBytes ?? MAX_NAMED_FILE_BYTES);
  } catch (error) {
    throw unreadable(variable, path, error as NodeJS.ErrnoException);
  }
}

function unreadable(variable: string, path: string, cause: NodeJS.ErrnoException): Error {
  // The path may be an address by mistake.
  const shown = withoutAddressSecrets(path);
  return new Error(`${variable}: cannot read ${shown}: ${reasonOf(cause, shown)}`, { cause });
}

function reasonOf({ code, message }: NodeJS.ErrnoException, path: string): string {
  switch (code) {
    case 'ENOENT':
      return `the file does not exist${workingDirectoryHint(path)}; correct the path`;
    case 'EACCES':
      return (
        'the user that runs weir has no permission to read the file; check the owner and mode of the file ' +
        'and its parent directories'
      );
    case 'EISDIR':
      return 'the path is a directory; specify a file';
    case 'ENOTREG':
      return 'the path is not a regular file; specify a regular file, not a pipe, a socket or a device';
    case 'EFBIG':
      return `the file ${message}; reduce the size of the file, or specify another file`;
    default:
      return message;
  }
}

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
