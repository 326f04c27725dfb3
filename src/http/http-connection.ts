import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { FULL_READ_BYTES, type HttpReadScheduler, type Reader } from './http-read-scheduler.js';

/** Bytes that are passed to the parser at once where requests may begin. They contain at most a few dozen requests. */
const PIECE_BYTES = 1024;
/** Bytes that may wait to be written before writers must pause: a few pages of a view. */
const WRITTEN_AHEAD_BYTES = 128 * 1024;
const END_OF_HEAD = Buffer.from('\r\n\r\n');

/**
 * A connection that gives Node's HTTP parser one request at a time. Otherwise, Node parses everything that it has read,
 * and 64 KB contain 2,600 requests, which take tens of milliseconds and about ten megabytes. Here, data after a request
 * is kept as bytes, and reading is paused, until the response is sent.
 */
export class HttpConnection extends Duplex implements Reader {
  readonly #socket: Socket;
  /** Data that is read but not parsed yet. */
  #rest: Buffer | undefined;
  /** Whether the client sends no more data, and whether the parser knows. */
  #hasEnded = false;
  #parserEnded = false;
  /** Whether the parser accepts more data. */
  #parserWantsData = false;
  /** The current request, until its response is sent. */
  #current: IncomingMessage | undefined;
  /** Bytes of its body that the parser has not received yet. Undefined if the body is chunked. */
  #bodyLeft: number | undefined;
  /** Handlers of requests that were parsed during another request. One piece may contain several requests. */
  readonly #waiting: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** Whether the socket waits to be read; see {@link HttpReadScheduler}. */
  #isHeld = false;
  readonly #reads: HttpReadScheduler;
  readonly #onBusy: (busy: boolean) => void;

  /** `onBusy` is called when the connection becomes busy with a request, and when all of its requests are answered. */
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

  /** Registers a request. `answer` is called after the responses to all earlier requests, see {@link endRequest}. */
  beginRequest(request: IncomingMessage, answer: () => void): void {
    if (this.#current !== undefined) {
      this.#waiting.push(() => this.#begin(request, answer, true));
      return;
    }
    this.#onBusy(true);
    this.#begin(request, answer);
  }

  /** Called when the response is sent or abandoned. */
  endRequest(): void {
    this.#current = undefined;
    this.#bodyLeft = undefined;
    if (this.writableEnded) {
      // This was the last response. Node.js assigns no socket to later requests, so their responses would never end.
      this.#waiting.length = 0;
      return;
    }
    const next = this.#waiting.shift();
    if (next !== undefined) next();
    else this.#onBusy(false);
    if (!this.destroyed) this.#feed();
  }

  /** The client's IP address. */
  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  /** Node calls this method to set the idle timeout of a connection. */
  setTimeout(ms: number): this {
    clearTimeout(this.#timer);
    this.#timer = ms > 0 ? setTimeout(() => this.emit('timeout'), ms).unref() : undefined;
    return this;
  }

  /** Node calls this method to close a connection after its last response. */
  destroySoon(): void {
    this.end(() => this.destroy());
  }

  resumeReading(): void {
    this.#isHeld = false;
    this.#feed();
  }

  override _read(): void {
    this.#parserWantsData = true;
    this.#feed();
  }

  override _write(data: Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(data, encoding, done);
  }

  override _writev(
    writes: { readonly chunk: Buffer; readonly encoding: BufferEncoding }[],
    done: (error?: Error | null) => void,
  ): void {
    // Sends all chunks in one write.
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
    // If a request had to wait, part of its body may have arrived together with its head. The body is then passed on in
    // small pieces.
    this.#bodyLeft = length === undefined || waited ? undefined : Number(length);
    answer();
  }

  #hold(): void {
    this.#isHeld = true;
    this.#reads.wait(this);
  }

  /** Passes to the parser the data that it may process now. */
  #feed(): void {
    // Data after the last request is read, so that its end is detected, and dropped.
    if (this.writableEnded) this.#rest = undefined;
    while (
      this.#rest !== undefined &&
      this.#parserWantsData &&
      (this.#current?.complete ?? false) === false
    ) {
      if (!this.#reads.hasTime()) {
        this.#hold();
        break;
      }
      const rest = this.#rest;
      const end = this.#pieceOf(rest);
      this.#rest = end < rest.length ? rest.subarray(end) : undefined;
      this.#parserWantsData = this.push(end < rest.length ? rest.subarray(0, end) : rest);
    }
    if (this.#rest !== undefined || this.#isHeld) this.#socket.pause();
    else if (!this.#hasEnded) this.#socket.resume();
    else if (!this.#parserEnded) {
      this.#parserEnded = true;
      this.push(null);
    }
  }

  /**
   * Returns where the next piece for the parser ends: at the end of a request's head, or of its body if the length is
   * known.
   */
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
