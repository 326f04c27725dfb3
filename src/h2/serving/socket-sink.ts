import type { Socket } from 'node:net';
import type { ByteSink } from '../connection-owner.js';
import { LINGER_MS } from './socket-server.js';

/** Reading pauses when the operating system has not accepted this many written bytes, until they are written. */
const PAUSE_BYTES = 65_536;
/** Time in milliseconds that a peer has to read the output that was written before {@link SocketSink.end}. */
const END_MS = 10_000;

/**
 * A {@link ByteSink} on a socket. If a peer does not read its responses, reading from it is paused as well. The memory
 * that such a peer can occupy is then limited by the responses to its earlier requests.
 */
export class SocketSink implements ByteSink {
  readonly #socket: Socket;
  #paused = false;
  /** Whether reading is paused until {@link resumeReading}. */
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

  /** Pauses reading until {@link resumeReading}, because received data waits for its turn. */
  pauseReading(): void {
    if (this.#readingPaused || this.#ended) return;
    this.#readingPaused = true;
    this.#socket.pause();
  }

  /** Resumes reading, unless the peer has to read its output first. */
  resumeReading(): void {
    if (!this.#readingPaused) return;
    this.#readingPaused = false;
    if (!this.#paused || this.#ended) this.#socket.resume();
  }

  /** Bytes that were received but not emitted yet, because of {@link pauseReading}. */
  get unreadBytes(): number {
    return this.#socket.readableLength;
  }

  get bufferedBytes(): number {
    return this.#socket.writableLength;
  }

  /** Whether {@link end} or {@link destroy} was called. Data that arrives later is not processed. */
  get ended(): boolean {
    return this.#ended;
  }

  write(bytes: Buffer): void {
    if (this.#ended) return;
    const socket = this.#socket;
    socket.write(bytes);
    // `write` returns false for every large write, even if the system has accepted all of it.
    if (socket.writableLength < PAUSE_BYTES || this.#paused) return;
    this.#paused = true;
    socket.pause();
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    const socket = this.#socket;
    if (socket.readableEnded && socket.writableLength === 0) {
      // Nothing is left to wait for. Thousands of peers may disconnect at once, and timers would be the larger part of
      // the cost of each.
      socket.end();
      return;
    }
    // If received bytes stayed unread, the system would send a reset, and the peer would lose our last output.
    socket.resume();
    const cut = (): void => {
      socket.destroy();
    };
    const late = setTimeout(cut, END_MS).unref();
    socket.once('close', () => clearTimeout(late));
    // After our side is closed, the peer must close its own. A peer that does not would occupy the socket forever.
    socket.end(() => setTimeout(cut, LINGER_MS).unref());
  }

  destroy(): void {
    this.#ended = true;
    this.#socket.destroy();
  }
}
