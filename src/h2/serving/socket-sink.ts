import type { Socket } from 'node:net';
import type { ByteSink } from '../byte-sink.js';
import { LINGER_MS } from './socket-server.js';

/** Bytes the operating system did not take yet at which reading stops until they are gone. */
const PAUSE_BYTES = 65_536;
/** How long a peer may take to read what was written before {@link SocketSink.end}. Milliseconds. */
const END_MS = 10_000;

/**
 * A socket as a {@link ByteSink}. A peer that does not read what it gets is not read from either: what it may make us
 * hold is then bounded by the answers to what it has already sent.
 */
export class SocketSink implements ByteSink {
  readonly #socket: Socket;
  #paused = false;
  /** Not read from until {@link resumeReading}. */
  #readingPaused = false;
  #ended = false;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('drain', () => {
      if (!this.#paused) return;
      this.#paused = false;
      if (!this.#readingPaused) socket.resume();
    });
  }

  /** What has come waits for its turn: nothing more is read until {@link resumeReading}. */
  pauseReading(): void {
    if (this.#readingPaused || this.#ended) return;
    this.#readingPaused = true;
    this.#socket.pause();
  }

  /** Reads on, unless the peer has to read first. */
  resumeReading(): void {
    if (!this.#readingPaused) return;
    this.#readingPaused = false;
    if (!this.#paused || this.#ended) this.#socket.resume();
  }

  /** Bytes that were read, but not handed out, as {@link pauseReading} came in between. */
  get unreadBytes(): number {
    return this.#socket.readableLength;
  }

  get bufferedBytes(): number {
    return this.#socket.writableLength;
  }

  /** Whether {@link end} or {@link destroy} was called: what still comes from the peer is not to be served. */
  get ended(): boolean {
    return this.#ended;
  }

  write(bytes: Buffer): void {
    if (this.#ended) return;
    const socket = this.#socket;
    socket.write(bytes);
    // The result of `write` would be false for any large write, though the system has taken it all.
    if (socket.writableLength < PAUSE_BYTES || this.#paused) return;
    this.#paused = true;
    socket.pause();
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    const socket = this.#socket;
    if (socket.readableEnded && socket.writableLength === 0) {
      // Nothing is left to wait for. Thousands of peers may go at once, and timers are the better half of what each of
      // them costs us.
      socket.end();
      return;
    }
    // Bytes left unread would make the system send a reset, and the peer lose what we wrote last.
    socket.resume();
    const cut = (): void => {
      socket.destroy();
    };
    const late = setTimeout(cut, END_MS).unref();
    socket.once('close', () => clearTimeout(late));
    // After our half is closed the peer has to close its own; one that does not would hold the socket for ever.
    socket.end(() => setTimeout(cut, LINGER_MS).unref());
  }

  destroy(): void {
    this.#ended = true;
    this.#socket.destroy();
  }
}
