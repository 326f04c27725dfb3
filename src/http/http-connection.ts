import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { FULL_READ_BYTES, type HttpReadScheduler, type Reader } from './http-read-scheduler.js';

/** Bytes that the parser is handed at once where requests may begin: they hold a few dozen of the shortest. */
const PIECE_BYTES = 1024;
/** What may wait to be written before writers are told to wait, in bytes: a few pages of a view. */
const WRITTEN_AHEAD_BYTES = 128 * 1024;
const END_OF_HEAD = Buffer.from('\r\n\r\n');

/**
 * A connection as Node's HTTP parser sees it: with one request at a time. Node parses all that it has read, and 64 KB
 * hold 2,600 requests, which takes tens of milliseconds and some ten megabytes. Here what follows a request stays
 * bytes, and is not read on, until the request is answered.
 */
export class HttpConnection extends Duplex implements Reader {
  readonly #socket: Socket;
  /** Read, and not parsed yet. */
  #rest: Buffer | undefined;
  /** Whether the other side sends no more, and whether the parser knows. */
  #hasEnded = false;
  #toldEnd = false;
  /** Whether the parser takes more. */
  #isWanted = false;
  /** The request that is being answered. */
  #current: IncomingMessage | undefined;
  /** Bytes of its body that the parser has not got yet; undefined where they come in chunks. */
  #bodyLeft: number | undefined;
  /** Answers requests that were parsed while another one is answered: a piece may hold several. */
  readonly #waiting: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** Whether its socket waits to be read on; see {@link HttpReadScheduler}. */
  #isHeld = false;
  readonly #reads: HttpReadScheduler;
  readonly #onBusy: (busy: boolean) => void;

  /** `onBusy` is told when the first request in a row begins, and when none is left to answer. */
  constructor(socket: Socket, reads: HttpReadScheduler, onBusy: (busy: boolean) => void) {
    super({ allowHalfOpen: true, writableHighWaterMark: WRITTEN_AHEAD_BYTES });
    this.#socket = socket;
    this.#reads = reads;
    this.#onBusy = onBusy;
    socket.on('data', (data) => {
      this.#rest = this.#rest === undefined ? data : Buffer.concat([this.#rest, data]);
      if (data.length >= FULL_READ_BYTES) this.#hold();
      this.#feed();
    });
    socket.on('end', () => {
      this.#hasEnded = true;
      this.#feed();
    });
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
  }

  /** `answer` runs as soon as the requests before this one are answered, which {@link endRequest} says. */
  beginRequest(request: IncomingMessage, answer: () => void): void {
    if (this.#current !== undefined) {
      this.#waiting.push(() => this.#begin(request, answer, true));
      return;
    }
    this.#onBusy(true);
    this.#begin(request, answer);
  }

  /** The answer is sent, or given up. */
  endRequest(): void {
    this.#current = undefined;
    this.#bodyLeft = undefined;
    if (this.writableEnded) {
      // It was the last answer. Node.js gives no later request a socket, so that its answer would never come to an end.
      this.#waiting.length = 0;
      return;
    }
    const next = this.#waiting.shift();
    if (next !== undefined) next();
    else this.#onBusy(false);
    if (!this.destroyed) this.#feed();
  }

  /** Where the connection comes from. */
  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  /** Node's way to say how long a connection without a request is kept. */
  setTimeout(ms: number): this {
    clearTimeout(this.#timer);
    this.#timer = ms > 0 ? setTimeout(() => this.emit('timeout'), ms).unref() : undefined;
    return this;
  }

  /** Node's way to close a connection whose answer was the last one. */
  destroySoon(): void {
    this.end(() => this.destroy());
  }

  resumeReading(): void {
    this.#isHeld = false;
    this.#feed();
  }

  override _read(): void {
    this.#isWanted = true;
    this.#feed();
  }

  override _write(data: Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(data, encoding, done);
  }

  override _writev(
    writes: { readonly chunk: Buffer; readonly encoding: BufferEncoding }[],
    done: (error?: Error | null) => void,
  ): void {
    // One write for all of them.
    this.#socket.cork();
    for (const [at, { chunk, encoding }] of writes.entries()) {
      if (at === writes.length - 1) this.#socket.write(chunk, encoding, done);
      else this.#socket.write(chunk, encoding);
    }
    this.#socket.uncork();
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#timer);
    this.#rest = undefined;
    this.#waiting.length = 0;
    this.#reads.cancel(this);
    this.#socket.destroy();
    done(error);
  }

  #begin(request: IncomingMessage, answer: () => void, waited = false): void {
    this.#current = request;
    const length = request.headers['content-length'];
    // What was handed over together with the head of a request that had to wait is not known, so its body comes in
    // small pieces.
    this.#bodyLeft = length === undefined || waited ? undefined : Number(length);
    answer();
  }

  #hold(): void {
    this.#isHeld = true;
    this.#reads.wait(this);
  }

  /** Hands the parser what it may have. */
  #feed(): void {
    // What follows the last request is read, so that its end is seen, and not looked at.
    if (this.writableEnded) this.#rest = undefined;
    while (this.#rest !== undefined && this.#isWanted && (this.#current?.complete ?? false) === false) {
      if (!this.#reads.hasTime()) {
        this.#hold();
        break;
      }
      const rest = this.#rest;
      const end = this.#pieceOf(rest);
      this.#rest = end < rest.length ? rest.subarray(end) : undefined;
      this.#isWanted = this.push(end < rest.length ? rest.subarray(0, end) : rest);
    }
    if (this.#rest !== undefined || this.#isHeld) this.#socket.pause();
    else if (!this.#hasEnded) this.#socket.resume();
    else if (!this.#toldEnd) {
      this.#toldEnd = true;
      this.push(null);
    }
  }

  /** Where the piece ends that the parser gets: at the end of a request's head, or of its body, if that can be told. */
  #pieceOf(rest: Buffer): number {
    if (this.#current !== undefined && this.#bodyLeft !== undefined) {
      const bytes = Math.min(Math.max(this.#bodyLeft, 1), rest.length);
      this.#bodyLeft -= bytes;
      return bytes;
    }
    const piece = Math.min(PIECE_BYTES, rest.length);
    if (this.#current !== undefined) return piece;
    const at = rest.subarray(0, piece).indexOf(END_OF_HEAD);
    return at === -1 ? piece : at + END_OF_HEAD.length;
  }
}
