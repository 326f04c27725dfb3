import { closeSync, constants, fstatSync, openSync, writeSync } from 'node:fs';
import { BackOff } from '../runtime/timers.js';

/** Maximum bytes of lines that wait for a reader. Further lines are dropped. */
export const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/**
 * Maximum bytes of a chunk of whole lines. A pipe writes this many bytes atomically (PIPE_BUF), so that lines of
 * several processes never mix.
 */
const CHUNK_BYTES = 4096;
/** Milliseconds between attempts while the reader does not read. */
const INITIAL_BACK_OFF_MS = 1;
const MAX_BACK_OFF_MS = 64;
/** Maximum bytes that are written in one turn of the event loop, when a slow reader continues. */
const MAX_BYTES_PER_TURN = 64 * 1024;
/** At exit, the remaining lines are lost after this many milliseconds without progress, or in total. */
const IDLE_END_TIMEOUT_MS = 250;
const END_TIMEOUT_MS = 2000;

const LINE_END = Buffer.from('\n');

export interface LogOutputOptions {
  /** Writes without blocking, and returns the number of bytes written. Throws what fs.writeSync throws. */
  write(bytes: Uint8Array): number;
  /** Default: 4 MiB. */
  readonly maxWaitingBytes?: number;
  /** Schedules a callback without keeping the process alive. Default: setTimeout. */
  readonly later?: (callback: () => void, ms: number) => void;
}

/**
 * Writes lines to an output without ever blocking. A line is written immediately if possible. If the reader is slow,
 * lines wait up to a bound. Then new lines are dropped and counted until all waiting lines are written.
 */
export class LogOutput {
  /** Number of lines dropped since the start. */
  dropped = 0;
  /**
   * Called with the number of lines that are missing at this point of the log, after the lines before them are written.
   */
  onGap: (lines: number) => void = () => {};
  /**
   * Called with the error when lines begin to be lost because writes fail, and with undefined when writes succeed
   * again.
   */
  onFailure: (error: NodeJS.ErrnoException | undefined) => void = () => {};
  readonly #options: LogOutputOptions;
  readonly #later: (callback: () => void, ms: number) => void;
  /** Chunks of whole lines. A part of the first chunk may already be written. */
  #chunks: Buffer[] = [];
  /** Lines that are not in a chunk yet. */
  #text = '';
  #textBytes = 0;
  #waiting = 0;
  /** Dropped lines that {@link onGap} has not reported. */
  #droppedSinceGap = 0;
  #scheduled = false;
  /** Whether the last write failed with an error other than a full buffer. */
  #failing = false;
  /** Whether a part of the first chunk is written. */
  #isFirstChunkPartial = false;
  /** Whether the output ends with a part of a line whose rest is lost. */
  #endsMidLine = false;
  readonly #backOff = new BackOff({ initialMs: INITIAL_BACK_OFF_MS, maxMs: MAX_BACK_OFF_MS });

  constructor(options: LogOutputOptions) {
    this.#options = options;
    this.#later = options.later ?? ((callback, ms) => setTimeout(callback, ms).unref());
  }

  /** Whether a new line would be dropped. */
  get isFull(): boolean {
    return this.#droppedSinceGap > 0;
  }

  /** @param line text with its line end */
  write(line: string): void {
    if (this.#droppedSinceGap > 0) {
      this.#drop();
      return;
    }
    const bytes = Buffer.byteLength(line);
    if (this.#waiting + bytes > (this.#options.maxWaitingBytes ?? MAX_WAITING_BYTES)) {
      this.#drop();
      this.#schedule();
      return;
    }
    if (this.#textBytes > 0 && this.#textBytes + bytes > CHUNK_BYTES) this.#endChunk();
    this.#text += line;
    this.#textBytes += bytes;
    this.#waiting += bytes;
    if (!this.#scheduled) this.#flush();
  }

  /**
   * Writes the waiting lines at exit, as long as the reader reads, for at most two seconds. `sleep` and `now` use
   * milliseconds.
   */
  end(sleep: (ms: number) => void = sleepMs, now: () => number = () => performance.now()): void {
    const latest = now() + END_TIMEOUT_MS;
    let giveUp = now() + IDLE_END_TIMEOUT_MS;
    while (this.#waiting > 0 || this.#droppedSinceGap > 0) {
      if (this.#writeSome()) giveUp = now() + IDLE_END_TIMEOUT_MS;
      else if (now() >= Math.min(giveUp, latest)) return;
      else sleep(5);
    }
  }

  #drop(): void {
    this.dropped++;
    this.#droppedSinceGap++;
  }

  #endChunk(): void {
    this.#chunks.push(Buffer.from(this.#text));
    this.#text = '';
    this.#textBytes = 0;
  }

  #flush(): void {
    const reads = this.#writeSome();
    if (reads) this.#backOff.reset();
    if (this.#waiting > 0 || this.#droppedSinceGap > 0) this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#later(() => {
      this.#scheduled = false;
      this.#flush();
    }, this.#backOff.next());
  }

  /** False if nothing could be written. */
  #writeSome(): boolean {
    if (this.#textBytes > 0) this.#endChunk();
    let written = 0;
    while (this.#chunks.length > 0 && written < MAX_BYTES_PER_TURN) {
      const taken = this.#writeFirst();
      if (taken === 0) return written > 0;
      written += taken;
    }
    if (this.#waiting === 0 && this.#droppedSinceGap > 0) {
      const lines = this.#droppedSinceGap;
      this.#droppedSinceGap = 0;
      this.onGap(lines);
    }
    return true;
  }

  /** Writes bytes from the first chunk. Returns the number of bytes that no longer wait to be written. */
  #writeFirst(): number {
    const chunk = this.#chunks[0] as Buffer;
    let taken: number;
    try {
      if (this.#endsMidLine) this.#options.write(LINE_END);
      this.#endsMidLine = false;
      taken = this.#options.write(chunk);
      if (this.#failing && taken > 0) this.#setFailing(undefined);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EAGAIN' || code === 'EBUSY' || code === 'EINTR') return 0;
      // A full disk or a closed pipe loses lines, but must not end the service.
      taken = chunk.length;
      this.dropped += chunk.reduce((lines, byte) => lines + (byte === 10 ? 1 : 0), 0);
      this.#endsMidLine ||= this.#isFirstChunkPartial;
      if (!this.#failing) this.#setFailing(error as NodeJS.ErrnoException);
    }
    this.#waiting -= taken;
    this.#isFirstChunkPartial = taken < chunk.length;
    if (this.#isFirstChunkPartial) this.#chunks[0] = chunk.subarray(taken);
    else this.#chunks.shift();
    return taken;
  }

  #setFailing(error: NodeJS.ErrnoException | undefined): void {
    this.#failing = error !== undefined;
    this.onFailure(error);
  }
}

function sleepMs(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/**
 * Returns a function that writes to standard output without blocking. Pipes and terminals are opened again for it,
 * because blocking is a property of the open file, which other processes share and may change.
 */
export function standardOutput(): (bytes: Uint8Array) => number {
  const reopened = reopenStandardOutput();
  if (reopened !== undefined) return (bytes) => writeSync(reopened, bytes);
  // A socket, as under systemd, cannot be opened again. Node.js sets it to non-blocking when it creates its stream, but
  // other processes that share the socket reset it when they start or exit. The mode is therefore set before each
  // write.
  const stdout = process.stdout as typeof process.stdout & { readonly _handle?: StreamHandle | null };
  return (bytes) => {
    stdout._handle?.setBlocking?.(false);
    return writeSync(1, bytes);
  };
}

/** Handle of a stream in Node.js; undefined for files. */
interface StreamHandle {
  setBlocking?(blocking: boolean): number;
}

/** Returns undefined for files, whose writes do not block, and if opening is not allowed. */
function reopenStandardOutput(): number | undefined {
  try {
    const stat = fstatSync(1);
    if (!stat.isFIFO() && !stat.isCharacterDevice()) return undefined;
    const opened = openSync(
      '/proc/self/fd/1',
      constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY,
    );
    const { dev, ino } = fstatSync(opened);
    if (dev === stat.dev && ino === stat.ino) return opened;
    closeSync(opened);
  } catch {
    // Another operating system, or missing permission.
  }
  return undefined;
}
