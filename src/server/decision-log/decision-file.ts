import { closeSync, constants, fstatSync, openSync, type Stats, statSync, writeSync } from 'node:fs';
import { whereLooked } from '../../working-directory.js';

/** How often it is looked whether the file is still the one at its path. */
const CHECK_INTERVAL_MS = 1000;
/** Others may not read what callers ask; a group may, for programs that ship logs. */
const FILE_MODE = 0o640;

/**
 * The file that the decision log is appended to. It is made where it is missing; once it was renamed or removed, as
 * programs that rotate logs do, a new one is made at its path within a second. Nothing here waits for a reader.
 */
export class DecisionFile {
  readonly #path: string;
  readonly #nowMs: () => number;
  #fd: number;
  #stat: Stats;
  #nextCheckMs: number;

  /** Throws an Error, a sentence, where the file cannot be written. */
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

  /** How many bytes were taken; throws what fs.writeSync throws. */
  write(bytes: Uint8Array): number {
    if (this.#fd >= 0 && this.#nowMs() >= this.#nextCheckMs) this.#reopenIfRotated();
    return writeSync(this.#fd, bytes);
  }

  /** What is written after it is lost. */
  close(): void {
    closeSync(this.#fd);
    // The number may soon be that of another file.
    this.#fd = -1;
  }

  /** Follows a file that was rotated. Where no new one can be made the old one is written on. */
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
      // The folder is gone, or the disk is full: what is written still reaches the old file, and it is tried again.
    }
  }
}

function openToAppend(path: string): number {
  const { O_RDWR, O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK, O_NOCTTY } = constants;
  const existing = statSync(path, { throwIfNoEntry: false });
  if (existing?.isSocket() || existing?.isBlockDevice())
    throw new Error('it is a socket or a disk; name a file, a named pipe, or a device such as /dev/stdout');
  // A pipe that is opened for both is there whether or not somebody reads it yet, and none that stops reading ends it.
  const access = existing?.isFIFO() ? O_RDWR : O_WRONLY | O_APPEND | O_CREAT;
  return openSync(path, access | O_NONBLOCK | O_NOCTTY, FILE_MODE);
}

function reasonOf({ code, message }: NodeJS.ErrnoException, path: string): string {
  switch (code) {
    case 'ENOENT':
      return `its folder does not exist${whereLooked(path)}; create it, or correct the path`;
    case 'EACCES':
      return 'this user may not write it; check the owner and the mode of the file and of its folders';
    case 'EROFS':
      return 'it lies on a file system that is read-only; mount a volume that can be written';
    case 'EISDIR':
      return 'it is a directory; name a file';
    default:
      return message;
  }
}
