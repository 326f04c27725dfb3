import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
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
    checkFile(fstatSync(fd), maxBytes);
    return checkSize(readFileSync(fd), maxBytes);
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
    checkFile(await file.stat(), maxBytes);
    return checkSize(await file.readFile(), maxBytes);
  } finally {
    await file.close();
  }
}

/** Reads standard input of any type to its end. Throws a {@link FileFault} if it has more than `maxBytes`. */
export function readStandardInput(maxBytes: number): Buffer {
  return checkSize(readFileSync(STANDARD_INPUT), maxBytes);
}

/** Sockets, and devices without a driver, cannot be opened. */
function notOpened(error: NodeJS.ErrnoException): Error {
  return error.code === 'ENXIO' || error.code === 'ENODEV' ? notRegular() : error;
}

function checkFile(stats: Stats, maxBytes: number): void {
  if (stats.isDirectory()) throw fault('EISDIR', 'is a directory');
  if (!stats.isFile()) throw notRegular();
  if (stats.size > maxBytes)
    throw fault('EFBIG', `has ${stats.size} bytes, more than the maximum of ${maxBytes}`);
}

/** Files in `/proc` have a size of 0 before they are read. */
function checkSize(bytes: Buffer, maxBytes: number): Buffer {
  if (bytes.length > maxBytes) throw fault('EFBIG', `has more than ${maxBytes} bytes`);
  return bytes;
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
