import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { messageOf } from '../runtime/regular-file.js';

/** Maximum length of a line, in characters. weir's decision log has lines of up to 32 Ki characters. */
export const MAX_LINE_CHARACTERS = 64 * 1024;
/** Name of standard input among the files of a command. */
export const STANDARD_INPUT = '-';

const CHUNK_BYTES = 256 * 1024;
const LINE_FEED = 0x0a;
const BYTE_ORDER_MARK = '\ufeff';

/** Some successive lines of a log. */
export interface LineBatch {
  /** Number of the first line, from 1. */
  readonly first: number;
  /** The lines, which may end with a carriage return. A line that is too long is undefined. */
  readonly lines: readonly (string | undefined)[];
}

/** A log cannot be read. The message names the log. */
export class LogError extends Error {
  override readonly name = 'LogError';
}

export function logName(path: string): string {
  return path === STANDARD_INPUT ? 'standard input' : path;
}

/**
 * Reads the lines of a file, a compressed file (gzip), or standard input. The last line need not end with a line feed.
 * Uses the memory of a few chunks, however long the log and its lines are. Throws a {@link LogError}.
 */
export async function* readLines(path: string): AsyncGenerator<LineBatch> {
  let rest: Buffer | undefined;
  let skips = false;
  let first = 1;
  for await (const chunk of bytesOf(path)) {
    let bytes = rest === undefined ? chunk : Buffer.concat([rest, chunk]);
    rest = undefined;
    const lines: (string | undefined)[] = [];
    if (skips) {
      const end = bytes.indexOf(LINE_FEED);
      if (end < 0) continue;
      bytes = bytes.subarray(end + 1);
      skips = false;
    }
    const end = bytes.lastIndexOf(LINE_FEED);
    if (end >= 0) for (const line of textOf(bytes.subarray(0, end), first)) lines.push(bounded(line));
    if (bytes.length - end - 1 > MAX_LINE_CHARACTERS * 4) {
      // A character has at most four bytes.
      lines.push(undefined);
      skips = true;
    } else if (end + 1 < bytes.length) rest = bytes.subarray(end + 1);
    if (lines.length > 0) yield { first, lines };
    first += lines.length;
  }
  if (rest !== undefined) yield { first, lines: textOf(rest, first).map(bounded) };
}

function textOf(bytes: Buffer, first: number): string[] {
  const text = bytes.toString();
  return (first === 1 && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text).split('\n');
}

function bounded(line: string): string | undefined {
  return line.length > MAX_LINE_CHARACTERS ? undefined : line;
}

/** Yields the bytes of a log, which are decompressed if they begin like a gzip file. */
async function* bytesOf(path: string): AsyncGenerator<Buffer> {
  const input =
    path === STANDARD_INPUT ? process.stdin : createReadStream(path, { highWaterMark: CHUNK_BYTES });
  try {
    const chunks = input[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    let { value: start, done } = await chunks.next();
    // A pipe may deliver single bytes.
    while (done !== true && start.length < 2) {
      const next = await chunks.next();
      if (next.done === true) break;
      start = Buffer.concat([start, next.value]);
    }
    if (done === true) return;
    const all = rejoined(start, chunks);
    if (start[0] !== 0x1f || start[1] !== 0x8b) yield* all;
    else yield* inflated(all);
  } catch (error) {
    throw new LogError(sentenceOf(path, error as NodeJS.ErrnoException));
  } finally {
    input.destroy();
  }
}

async function* rejoined(start: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield start;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
}

async function* inflated(bytes: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
  const source = Readable.from(bytes);
  source.on('error', (error) => gunzip.destroy(error));
  source.pipe(gunzip);
  try {
    for await (const chunk of gunzip) yield chunk as Buffer;
  } finally {
    source.destroy();
  }
}

function sentenceOf(path: string, error: NodeJS.ErrnoException): string {
  const name = logName(path);
  if (error.code?.startsWith('Z_') === true)
    return `"${name}" is a damaged gzip file (${error.message}); fetch it again`;
  return messageOf(error, name);
}
