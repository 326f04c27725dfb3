import type { Socket } from 'node:net';
import type { ByteSink } from './byte-sink.js';
import { LINGER_MS } from './socket-server.js';

/** Bytes the operating system did not take yet at which reading stops until they are gone. */
const PAUSE_BYTES = 65_536;
/** Bytes read from a socket after which the others have their turn. */
const TURN_BYTES = 65_536;
/** How long a peer may take to read what was written before {@link SocketSink.end}. Milliseconds. */
const END_MS = 10_000;

/**
 * A socket as a {@link ByteSink}. A peer that does not read what it gets is not read from either: what it may make us hold is then bounded
 * by the answers to what it has already sent.
 */
export class SocketSink implements ByteSink {
  readonly #socket: Socket;
  #paused = false;
  /** Not read from until the next turn of the event loop. */
  #resting = false;
  /** Read since the last rest. */
  #readBytes = 0;
  #ended = false;

  /** `onWritable` is called when everything written has gone after a write that returned false. */
  constructor(socket: Socket, onWritable: () => void) {
    this.#socket = socket;
    socket.on('drain', () => {
      if (!this.#paused) return;
      this.#paused = false;
      if (!this.#resting) socket.resume();
      onWritable();
    });
  }

  /**
   * Counts bytes that came. libuv reads up to 2 MiB of one socket before it looks at another: a few callers that send all they can would keep
   * every other one, and all timers, waiting for seconds.
   */
  countRead(bytes: number): void {
    this.#readBytes += bytes;
    if (this.#readBytes < TURN_BYTES || this.#resting) return;
    this.#readBytes = 0;
    this.#resting = true;
    this.#socket.pause();
    setImmediate(() => {
      this.#resting = false;
      if (!this.#paused || this.#ended) this.#socket.resume();
    });
  }

  get bufferedBytes(): number {
    return this.#socket.writableLength;
  }

  /** Whether {@link end} or {@link destroy} was called: what still comes from the peer is not to be served. */
  get ended(): boolean {
    return this.#ended;
  }

  write(bytes: Buffer): boolean {
    if (this.#ended) return true;
    const socket = this.#socket;
    socket.write(bytes);
    // The result of `write` would be false for any large write, though the system has taken it all.
    if (socket.writableLength < PAUSE_BYTES) return true;
    if (!this.#paused) {
      this.#paused = true;
      socket.pause();
    }
    return false;
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    const socket = this.#socket;
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
