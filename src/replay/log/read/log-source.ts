import { constants, createReadStream, fstatSync, openSync, type ReadStream, type Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import { isatty } from 'node:tty';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { quantity } from '../../../quantity.js';
import { messageOf } from '../../../regular-file.js';
import { LogError } from '../logged-request.js';

/** Name of standard input on the command line. */
export const STANDARD_INPUT = '-';

/** Bytes that are read at once. Larger texts of V8 are slower to search. */
const CHUNK_BYTES = 256 * 1024;

/** Formats of compressed logs, by the bytes that they begin with (RFC 1952; RFC 8878). */
const COMPRESSIONS = [
  { magic: Buffer.from([0x1f, 0x8b]), open: createGunzip, tool: 'zcat' },
  { magic: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), open: createZstdDecompress, tool: 'zstdcat' },
] as const;
const MAGIC_BYTES = 4;
const UTF16_MARKS = [Buffer.from([0xff, 0xfe]), Buffer.from([0xfe, 0xff])];

/** A file of the log, or standard input. gzip and zstd are recognised by their first bytes. */
export class LogSource {
  readonly path: string;
  /** Name for messages. */
  readonly name: string;
  /** Size in bytes; undefined for a pipe. */
  readonly size: number | undefined;
  /** Equal for all names of the same file. */
  readonly identity: string;
  readonly #file: ReadStream | Socket;
  #chunks: AsyncIterator<Buffer> | undefined;
  #archive: (typeof COMPRESSIONS)[number] | undefined;

  private constructor(path: string, stats: Stats) {
    this.path = path;
    this.size = stats.isFile() ? stats.size : undefined;
    this.identity = `${stats.dev}:${stats.ino}`;
    if (path === STANDARD_INPUT) {
      this.name = 'standard input';
      this.#file = openInput();
    } else {
      this.name = path;
      // To open a pipe without a writer would block a thread, so that the process could not exit.
      const isPipe = stats.isFIFO();
      this.#file = isPipe
        ? openPipe(openSync(path, constants.O_RDONLY | constants.O_NONBLOCK))
        : createReadStream(path, { highWaterMark: CHUNK_BYTES });
    }
  }

  /** Opens a file, or standard input for `-`. Throws {@link LogError}. */
  static async open(path: string): Promise<LogSource> {
    if (path === STANDARD_INPUT) {
      if (isatty(0)) throw new LogError('standard input is a terminal; pipe a log to it, or name a file');
      return new LogSource(path, fstatSync(0));
    }
    try {
      const stats = await stat(path);
      if (stats.isDirectory()) throw new LogError(`${path} is a directory; pass its files: ${path}/*.log`);
      return new LogSource(path, stats);
    } catch (error) {
      throw error instanceof LogError ? error : notRead(path, error);
    }
  }

  /** Bytes that were read from the file. */
  get bytesRead(): number {
    return this.#file.bytesRead;
  }

  /**
   * Returns the next bytes; undefined at the end. `lines` is the number of lines so far, for messages. Throws
   * {@link LogError}.
   */
  async next(lines: number): Promise<Buffer | undefined> {
    try {
      this.#chunks ??= await this.#open();
      const next = await this.#chunks.next();
      return next.done === true ? undefined : next.value;
    } catch (error) {
      throw error instanceof LogError ? error : this.#fault(error, lines);
    }
  }

  close(): void {
    this.#file.destroy();
  }

  async #open(): Promise<AsyncIterator<Buffer>> {
    const chunks = this.#file[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    let head: Buffer = Buffer.alloc(0);
    while (head.length < MAGIC_BYTES) {
      const next = await chunks.next();
      if (next.done === true) break;
      head = Buffer.concat([head, next.value]);
    }
    const beginsWith = (magic: Buffer) => head.subarray(0, magic.length).equals(magic);
    if (UTF16_MARKS.some(beginsWith))
      throw new LogError(`${this.name} is UTF-16; convert it to UTF-8: iconv -f UTF-16 -t UTF-8`);
    const all = prepended(head, chunks);
    this.#archive = COMPRESSIONS.find(({ magic }) => beginsWith(magic));
    if (this.#archive === undefined) return all;
    // The last stream reports the errors of all streams.
    const unpacked = pipeline(all, this.#archive.open({ chunkSize: CHUNK_BYTES }), () => {});
    return unpacked[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  #fault(error: unknown, lines: number): LogError {
    const { code = '', message } = error as NodeJS.ErrnoException;
    const isOfArchive = this.#archive !== undefined && /^(?:Z_|ZSTD_|ERR_ZLIB)/.test(code);
    if (this.#archive === undefined || !isOfArchive) return notRead(this.name, error);
    const { bytesRead, size } = this;
    const place = size === undefined ? `${bytesRead} bytes` : `${bytesRead} of ${size} bytes`;
    const unpack =
      this.path === STANDARD_INPUT ? `… | ${this.#archive.tool}` : `${this.#archive.tool} ${this.path}`;
    return new LogError(
      `${this.name}: the archive is damaged after ${quantity(lines, 'line')} (${place}): ${message}; copy the file ` +
        `again, or replay what can be unpacked: ${unpack} | weir replay … -`,
    );
  }
}

/** Opens standard input. A read from a pipe must not keep the process from exiting, so it must not block a thread. */
function openInput(): ReadStream | Socket {
  const stats = fstatSync(0);
  if (stats.isFIFO() || stats.isSocket()) return openPipe(0);
  return createReadStream('', { fd: 0, autoClose: false, highWaterMark: CHUNK_BYTES });
}

function openPipe(fd: number): Socket {
  return new Socket({ fd, readable: true, writable: false });
}

async function* prepended(head: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  if (head.length > 0) yield head;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
}

function notRead(name: string, error: unknown): LogError {
  return new LogError(messageOf(error, name));
}
