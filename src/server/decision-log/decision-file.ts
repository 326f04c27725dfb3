import { closeSync, constants, fstatSync, openSync, type Stats, statSync, writeSync } from 'node:fs';
import { workingDirectoryHint } from '../../runtime/working-directory.js';

/** Interval between two checks whether the file at the path was replaced, in milliseconds. */
const CHECK_INTERVAL_MS = 1000;
/** Only the owner and the group, such as a log shipper, may read the requests of callers. */
const FILE_MODE = 0o640;

/**
 * The file to which the decision log is appended. weir creates the file if it is missing. Once a log rotator renames or
 * removes it, weir creates a new file at its path within a second. Writes never wait for a reader.
 */
export class DecisionFile {
  readonly #path: string;
  readonly #nowMs: () => number;
  #fd: number;
  #stat: Stats;
  #nextCheckMs: number;

  /** Opens the file. Throws an Error with a sentence if the file cannot be written. */
  constructor(path: string, nowMs: () => number = () => performance.now()) {
    this.#path = path;
    this.#nowMs = nowMs;
    try {
      this.#fd = openToAppend(path);
    } catch (error) {
      throw new Error(`cannot write ${path}: ${reasonOf(error as NodeJS.ErrnoException, path)}`);
    }
    this.#stat = fstatSync(this.#fd);
    this.#nextCheckMs = nowMs() + CHECK_INTERVAL_MS;
  }

  /** Returns the number of bytes written. Throws what fs.writeSync throws. */
  write(bytes: Uint8Array): number {
    if (this.#fd >= 0 && this.#nowMs() >= this.#nextCheckMs) this.#reopenIfRotated();
    return writeSync(this.#fd, bytes);
  }

  /** Closes the file. Later writes fail, so their bytes are lost. */
  close(): void {
    closeSync(this.#fd);
    // The system may soon use the descriptor for another file.
    this.#fd = -1;
  }

  /** Opens the new file after a rotation. If that fails, writes continue to the old file. */
  #reopenIfRotated(): void {
    this.#nextCheckMs = this.#nowMs() + CHECK_INTERVAL_MS;
    if (!this.#stat.isFile()) return;
    try {
      const existing = statSync(this.#path, { throwIfNoEntry: false });
      if (existing?.ino === this.#stat.ino && existing.dev === this.#stat.dev) return;
      const fd = openToAppend(this.#path);
      closeSync(this.#fd);
      this.#fd = fd;
      this.#stat = fstatSync(fd);
    } catch {
      // The folder is missing, or the disk is full. Writes go to the old file until the next check.
    }
  }
}

function openToAppend(path: string): number {
  const { O_RDWR, O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK, O_NOCTTY } = constants;
  const existing = statSync(path, { throwIfNoEntry: false });
  if (existing?.isSocket() || existing?.isBlockDevice())
    throw new Error(
      'the path is a socket or a block device; specify a file, a named pipe, or a device such as /dev/stdout',
    );
  // A pipe that is opened for reading and writing needs no reader yet, and stays open when its reader exits.
  const access = existing?.isFIFO() ? O_RDWR : O_WRONLY | O_APPEND | O_CREAT;
  return openSync(path, access | O_NONBLOCK | O_NOCTTY, FILE_MODE);
}

function reasonOf({ code, message }: NodeJS.ErrnoException, path: string): string {
  switch (code) {
    case 'ENOENT':
      return (
        `the parent directory does not exist${workingDirectoryHint(path)}; create the directory, or ` +
        'correct the path'
      );
    case 'EACCES':
      return (
        'the user that runs weir has no permission to write to the file; check the owner and mode of the ' +
        'file and its parent directories'
      );
    case 'EROFS':
      return 'the file system is read-only; mount a writable volume';
    case 'EISDIR':
      return 'the path is a directory; specify a file';
    default:
      return message;
  }
}
