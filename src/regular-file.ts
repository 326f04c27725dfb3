import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/*
 * The only readers of files that somebody names: in a variable, an option, a policy, or a file of an installation. What
 * lies at such a path may be a pipe that nobody writes to, a device without end, or a file of any size; reading it must
 * neither wait for ever nor take more memory than its reader allows.
 */

/** Opening a pipe does not wait for a writer, reading does not wait for data, and no terminal takes hold of weir. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
const CHUNK_BYTES = 64 * 1024;
const STANDARD_INPUT = 0;

/** What {@link readRegularFile} and {@link loadRegularFile} refuse, beside what the file system does. */
export type FileFault = NodeJS.ErrnoException & {
  /** `ENOTREG`: neither a regular file nor a directory; `EFBIG`: too large, the message says how large it may be. */
  readonly code: 'EISDIR' | 'ENOTREG' | 'EFBIG';
};

/**
 * Reads a regular file of at most `maxBytes`, at once: for the start, for commands, and for threads that decide
 * nothing. Throws a {@link FileFault}, or what the file system says.
 */
export function readRegularFile(path: string, maxBytes: number): Buffer {
  let fd: number;
  try {
    fd = openSync(path, FLAGS);
  } catch (error) {
    throw notOpened(error as NodeJS.ErrnoException);
  }
  try {
    return readAll(fd, contentsOf(fstatSync(fd), maxBytes));
  } finally {
    closeSync(fd);
  }
}

/** {@link readRegularFile} for a process that decides: the file system is asked in other threads, chunk by chunk. */
export async function loadRegularFile(path: string, maxBytes: number): Promise<Buffer> {
  let file: FileHandle;
  try {
    file = await open(path, FLAGS);
  } catch (error) {
    throw notOpened(error as NodeJS.ErrnoException);
  }
  try {
    const contents = contentsOf(await file.stat(), maxBytes);
    while (contents.took((await file.read(contents.room(), { position: null })).bytesRead));
    return contents.bytes();
  } finally {
    await file.close();
  }
}

/** Reads standard input to its end, whatever it is; throws a {@link FileFault} where it has more than `maxBytes`. */
export function readStandardInput(maxBytes: number): Buffer {
  return readAll(STANDARD_INPUT, new Contents(0, maxBytes));
}

function readAll(fd: number, contents: Contents): Buffer {
  while (contents.took(readSync(fd, contents.room(), { position: null })));
  return contents.bytes();
}

/**
 * What was read so far, never more than is allowed: files may grow meanwhile, and those of `/proc` say that they are
 * empty.
 */
class Contents {
  readonly #maxBytes: number;
  #buffer: Buffer;
  #length = 0;

  constructor(size: number, maxBytes: number) {
    this.#maxBytes = maxBytes;
    // One byte more than there should be, to see that there are not more.
    this.#buffer = Buffer.allocUnsafe(size + 1);
  }

  /** Where the next chunk goes. */
  room(): Buffer {
    const { length } = this.#buffer;
    if (this.#length === length) {
      const larger = Math.min(2 * length + CHUNK_BYTES, this.#maxBytes + 1);
      this.#buffer = Buffer.concat([this.#buffer], larger);
    }
    return this.#buffer.subarray(this.#length, this.#length + CHUNK_BYTES);
  }

  /** Counts what was read there; false at the end. */
  took(bytes: number): boolean {
    this.#length += bytes;
    if (this.#length > this.#maxBytes) throw fault('EFBIG', `has more than ${this.#maxBytes} bytes`);
    return bytes > 0;
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }
}

/** Sockets, and devices without a driver, cannot be opened at all. */
function notOpened(error: NodeJS.ErrnoException): Error {
  return error.code === 'ENXIO' || error.code === 'ENODEV' ? notRegular() : error;
}

function contentsOf(stats: Stats, maxBytes: number): Contents {
  if (stats.isDirectory()) throw fault('EISDIR', 'is a directory');
  if (!stats.isFile()) throw notRegular();
  if (stats.size > maxBytes)
    throw fault('EFBIG', `has ${stats.size} bytes, more than the maximum of ${maxBytes}`);
  return new Contents(stats.size, maxBytes);
}

function notRegular(): FileFault {
  return fault('ENOTREG', 'is not a regular file');
}

function fault(code: FileFault['code'], message: string): FileFault {
  return Object.assign(new Error(message), { code });
}
