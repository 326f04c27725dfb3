import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { withoutAddressSecrets } from './shown-address.js';
import { workingDirectoryHint } from './working-directory.js';

/*
 * The only functions that read files whose path a user provides: in a variable, an option, a policy or another file.
 * Such a path may be a pipe without a writer, an endless device, or a file of any size. Reading must never block
 * indefinitely, or use more memory than the caller allows.
 */

/**
 * With these flags, opening a pipe does not wait for a writer, reading does not wait for data, and a terminal does not
 * become weir's controlling terminal.
 */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
const CHUNK_BYTES = 64 * 1024;
const STANDARD_INPUT = 0;

/**
 * The error that {@link readRegularFile} and {@link loadRegularFile} throw in addition to errors of the file system.
 */
export type FileFault = NodeJS.ErrnoException & {
  /** `ENOTREG`: neither a regular file nor a directory; `EFBIG`: too large, with the maximum in the message. */
  readonly code: 'EISDIR' | 'ENOTREG' | 'EFBIG';
};

/**
 * Reads a regular file of at most `maxBytes` synchronously: at the start, in commands, and in threads that do not
 * decide requests. Throws a {@link FileFault} or an error of the file system.
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

/** Reads like {@link readRegularFile}, but asynchronously and in chunks, for a process that decides requests. */
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

/** Reads standard input of any type to its end. Throws a {@link FileFault} if it has more than `maxBytes`. */
export function readStandardInput(maxBytes: number): Buffer {
  return readAll(STANDARD_INPUT, new Contents(0, maxBytes));
}

function readAll(fd: number, contents: Contents): Buffer {
  while (contents.took(readSync(fd, contents.room(), { position: null })));
  return contents.bytes();
}

/**
 * Data read so far, up to the allowed size. The size of a file is not reliable: the file may grow, and files in `/proc`
 * have a size of 0.
 */
class Contents {
  readonly #maxBytes: number;
  #buffer: Buffer;
  #length = 0;

  constructor(size: number, maxBytes: number) {
    this.#maxBytes = maxBytes;
    // One extra byte shows whether the file is larger than allowed.
    this.#buffer = Buffer.allocUnsafe(size + 1);
  }

  /** Returns the place for the next chunk. */
  room(): Buffer {
    const { length } = this.#buffer;
    if (this.#length === length) {
      const larger = Math.min(2 * length + CHUNK_BYTES, this.#maxBytes + 1);
      this.#buffer = Buffer.concat([this.#buffer], larger);
    }
    return this.#buffer.subarray(this.#length, this.#length + CHUNK_BYTES);
  }

  /** Counts the bytes of a chunk. Returns false at the end of the file. */
  took(bytes: number): boolean {
    this.#length += bytes;
    if (this.#length > this.#maxBytes) throw fault('EFBIG', `has more than ${this.#maxBytes} bytes`);
    return bytes > 0;
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }
}

/** Sockets, and devices without a driver, cannot be opened. */
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

/** Returns a sentence for an error of the file system. */
export function messageOf(error: unknown, file?: string): string {
  const { code, path, message } = error as NodeJS.ErrnoException;
  const name = withoutAddressSecrets(String(file ?? path));
  if (code === 'ENOENT')
    return `"${name}" does not exist${workingDirectoryHint(String(name))}; check the path`;
  if (code === 'EACCES') return `"${name}" cannot be read (permission denied); check its owner and mode`;
  if (code === 'EISDIR' || code === 'ENOTREG')
    return `"${name}" is not a regular file; specify a regular file`;
  if (code === 'EFBIG') return `"${name}" ${message}; split it into several files`;
  return code === undefined ? message : `"${name}" cannot be read (${code}); check the path`;
}
