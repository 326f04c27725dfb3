import { loadRegularFile, readRegularFile } from '../runtime/regular-file.js';
import { withoutAddressSecrets } from '../runtime/shown-address.js';
import { workingDirectoryHint } from '../runtime/working-directory.js';

/** Default maximum number of bytes of a file that a setting or an option names. */
export const MAX_NAMED_FILE_BYTES = 1024 * 1024;

/** A file, with the setting or option that names it. */
export interface NamedFile {
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
