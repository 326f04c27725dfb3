import { closeSync, constants, fstatSync, openSync, writeSync } from 'node:fs';
import { BackOff } from '../runtime/back-off.js';

/** Bytes of lines that wait for a reader; more are dropped. */
export const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/**
 * Lines are written in portions of whole lines that a pipe takes as a whole or not at all (PIPE_BUF): those of several
 * processes never mix.
 */
const PORTION_BYTES = 4096;
/** Pauses before the next try while nobody reads. */
const FIRST_PAUSE_MS = 1;
const LONGEST_PAUSE_MS = 64;
/** So much may be written in one turn of the event loop to a reader that was away. */
const BURST_BYTES = 64 * 1024;
/** At the end of the process: so long without anybody reading, or in all, and what is left is given up. */
const PATIENCE_MS = 250;
const LONGEST_END_MS = 2000;

const LINE_END = Buffer.from('\n');

export interface LogOutputOptions {
  /** Writes, without ever waiting, and returns how many bytes were taken; throws what fs.writeSync throws. */
  write(bytes: Uint8Array): number;
  /** Default: 4 MiB. */
  readonly maxWaitingBytes?: number;
  /** Calls back later; setTimeout when absent. The process is not held by it. */
  readonly later?: (callback: () => void, ms: number) => void;
}

/**
 * Lines on their way to standard output. Nothing here waits: a line is written at once where that is possible; where
 * nobody reads, lines wait up to a bound, beyond which new ones are dropped and counted until those that wait are
 * written.
 */
export class LogOutput {
  /** Lines that were dropped since the start. */
  dropped = 0;
  /** Told how many lines are missing at this place of the log, once those before them are written. */
  onGap: (lines: number) => void = () => {};
  /** Told of the error when lines begin to be lost because they cannot be written, and of none when that is over. */
  onFailure: (error: NodeJS.ErrnoException | undefined) => void = () => {};
  readonly #options: LogOutputOptions;
  readonly #later: (callback: () => void, ms: number) => void;
  /** Whole portions, but the first, of which a part may be written. */
  #portions: Buffer[] = [];
  /** Lines that are no portion yet. */
  #text = '';
  #textBytes = 0;
  #waiting = 0;
  /** Lines dropped of which {@link onGap} was not told. */
  #missing = 0;
  #scheduled = false;
  /** Whether the last write failed for good. */
  #failing = false;
  /** Whether a part of the first portion is written. */
  #begun = false;
  /** Whether what was written last is a part of a line whose rest is lost. */
  #broken = false;
  readonly #backOff = new BackOff({ initialMs: FIRST_PAUSE_MS, maxMs: LONGEST_PAUSE_MS });

  constructor(options: LogOutputOptions) {
    this.#options = options;
    this.#later = options.later ?? ((callback, ms) => setTimeout(callback, ms).unref());
  }

  /** Whether a line would be dropped now. */
  get isFull(): boolean {
    return this.#missing > 0;
  }

  /** @param line with its end */
  write(line: string): void {
    if (this.#missing > 0) {
      this.#drop();
      return;
    }
    const bytes = Buffer.byteLength(line);
    if (this.#waiting + bytes > (this.#options.maxWaitingBytes ?? MAX_WAITING_BYTES)) {
      this.#drop();
      this.#schedule();
      return;
    }
    if (this.#textBytes > 0 && this.#textBytes + bytes > PORTION_BYTES) this.#endPortion();
    this.#text += line;
    this.#textBytes += bytes;
    this.#waiting += bytes;
    if (!this.#scheduled) this.#go();
  }

  /**
   * At the end of the process: writes what waits as long as somebody reads, at most for two seconds. `sleep` and `now`
   * count milliseconds.
   */
  end(sleep: (ms: number) => void = sleepMs, now: () => number = () => performance.now()): void {
    const latest = now() + LONGEST_END_MS;
    let giveUp = now() + PATIENCE_MS;
    while (this.#waiting > 0 || this.#missing > 0) {
      if (this.#writeSome()) giveUp = now() + PATIENCE_MS;
      else if (now() >= Math.min(giveUp, latest)) return;
      else sleep(5);
    }
  }

  #drop(): void {
    this.dropped++;
    this.#missing++;
  }

  #endPortion(): void {
    this.#portions.push(Buffer.from(this.#text));
    this.#text = '';
    this.#textBytes = 0;
  }

  #go(): void {
    const reads = this.#writeSome();
    if (reads) this.#backOff.reset();
    if (this.#waiting > 0 || this.#missing > 0) this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#later(() => {
      this.#scheduled = false;
      this.#go();
    }, this.#backOff.next());
  }

  /** False when nothing could be written. */
  #writeSome(): boolean {
    if (this.#textBytes > 0) this.#endPortion();
    let written = 0;
    while (this.#portions.length > 0 && written < BURST_BYTES) {
      const taken = this.#writeFirst();
      if (taken === 0) return written > 0;
      written += taken;
    }
    if (this.#waiting === 0 && this.#missing > 0) {
      const lines = this.#missing;
      this.#missing = 0;
      this.onGap(lines);
    }
    return true;
  }

  /** How many bytes are no longer waiting. */
  #writeFirst(): number {
    const portion = this.#portions[0] as Buffer;
    let taken: number;
    try {
      if (this.#broken) this.#options.write(LINE_END);
      this.#broken = false;
      taken = this.#options.write(portion);
      if (this.#failing && taken > 0) this.#fails(undefined);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EAGAIN' || code === 'EBUSY' || code === 'EINTR') return 0;
      // A full disk behind the log, or a reader who is gone, loses lines; neither must end the service.
      taken = portion.length;
      this.dropped += portion.reduce((lines, byte) => lines + (byte === 10 ? 1 : 0), 0);
      this.#broken ||= this.#begun;
      if (!this.#failing) this.#fails(error as NodeJS.ErrnoException);
    }
    this.#waiting -= taken;
    this.#begun = taken < portion.length;
    if (this.#begun) this.#portions[0] = portion.subarray(taken);
    else this.#portions.shift();
    return taken;
  }

  #fails(error: NodeJS.ErrnoException | undefined): void {
    this.#failing = error !== undefined;
    this.onFailure(error);
  }
}

function sleepMs(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/**
 * A write to standard output that does not wait for a reader. Pipes and terminals are opened anew for it: whether a
 * write waits is a property of what was opened, which other processes share and change.
 */
export function standardOutput(): (bytes: Uint8Array) => number {
  const own = openAnew();
  if (own !== undefined) return (bytes) => writeSync(own, bytes);
  // A socket, as under systemd, cannot be opened anew. Node.js sees to it that writes to one do not wait, once it has
  // made its stream of it; but a process that ends, or is started, makes them wait again for all who share it, so that
  // is said before each write.
  const stdout = process.stdout as typeof process.stdout & { readonly _handle?: StreamHandle | null };
  return (bytes) => {
    stdout._handle?.setBlocking?.(false);
    return writeSync(1, bytes);
  };
}

/** What Node.js has below a stream; files have none. */
interface StreamHandle {
  setBlocking?(blocking: boolean): number;
}

/** Undefined for files, whose writes do not wait for anybody, and where it is not allowed. */
function openAnew(): number | undefined {
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
    // Another system, or no right to open it.
  }
  return undefined;
}
