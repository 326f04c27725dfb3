import type { Socket } from 'node:net';
import { freeBuffer } from '../../runtime/free-buffer.js';
import { type NextTurn, TurnScheduler } from '../../runtime/turns.js';
import { type ByteSink, type ConnectionEvents, H2Connection } from '../connection.js';

import { ERROR_CODE } from '../failure.js';
import type { H2Limits } from '../limits.js';
import type { RequestHandler } from '../request-handler.js';
import type { TlsOptions } from '../tls-material.js';
import { type BufferBudget, MemoryAccount, type MemoryOwner } from './buffer-budget.js';
import { ReaderState, type ReadScheduler } from './read-scheduler.js';
import { LINGER_MS } from './socket-server.js';

/** Limits, timeouts and dependencies of an H2Server. */
export interface H2ServerOptions {
  readonly limits: H2Limits;
  /** TLS configuration (ALPN h2). If absent, the server uses cleartext with prior knowledge (RFC 9113 section 3.3). */
  readonly tls?: TlsOptions | undefined;
  /**
   * Maximum age of a connection in milliseconds, after which it is sent a GOAWAY. A jitter of up to a tenth is applied
   * to each connection. Infinity: no maximum.
   */
  readonly maxConnectionAgeMs: number;
  /** Time in milliseconds for which streams may continue after that GOAWAY. */
  readonly maxConnectionAgeGraceMs: number;
  /** Idle time in milliseconds after which a connection is sent a PING. Infinity: never. */
  readonly keepAliveIntervalMs: number;
  /** Time in milliseconds after that PING at which the connection is closed if nothing was received. */
  readonly keepAliveTimeoutMs: number;
  /** Timeout in milliseconds for the TLS handshake, and again for the peer's SETTINGS (RFC 9113 section 3.4). */
  readonly handshakeTimeoutMs: number;
  /**
   * Maximum number of open connections, including those in a TLS handshake. Further connections are closed immediately.
   */
  readonly maxConnections: number;
  /**
   * Maximum total memory of all connections, in bytes. When it is exceeded, the connection that uses the most memory is
   * closed.
   */
  readonly maxBufferedBytes: number;
  /** Milliseconds on a clock that never goes back. */
  nowMs(): number;
  /** From 0 to below 1, for the jitter of connection ages. */
  random(): number;
  /**
   * Reports failures to accept connections, such as too many open files, and bugs in weir that close a connection. The
   * server continues.
   */
  onError(error: unknown): void;
  /** Reports, in a sentence, a connection that does not start as HTTP/2 or violates the protocol. */
  onBadConnection(message: string): void;
}

/** Idle time after which a connection frees the buffers that it keeps for reuse, in milliseconds. */
const IDLE_MS = 1000;
/**
 * Minimum size of chunks that are freed immediately after reading. The garbage collector frees shorter chunks as
 * cheaply.
 */
const FREED_BYTES = 4096;

export interface SharedResources {
  readonly turns: ReadScheduler;
  readonly budget: BufferBudget;
  readonly lost: LostConnections;
}

/**
 * A connection of a server with its socket and timeouts. If the engine or its handler throws, which would be a bug in
 * weir, only this connection is closed.
 */
export class ServedConnection implements ConnectionEvents, MemoryOwner, LostConnection {
  readonly #peer: string;
  readonly #options: H2ServerOptions;
  readonly #turns: ReadScheduler;
  readonly #budget: BufferBudget;
  readonly #lost: LostConnections;
  readonly #readerState = new ReaderState(() => this.#resumeReading());
  readonly #account: MemoryAccount = new MemoryAccount(this);
  readonly #onOutput: (connection: ServedConnection) => void;
  readonly #sink: SocketSink;
  readonly #connection: H2Connection;
  readonly #acceptedMs: number;
  readonly #maxAgeMs: number;
  /** Received chunks that wait to be read, oldest first. The first chunk was read up to {@link #readOffset}. */
  #pendingChunks: Buffer[] = [];
  #readOffset = 0;
  #pendingBytes = 0;
  /** Whether the peer has closed its side while received data is still unread. */
  #peerEnded = false;
  /** Whether the socket is closed, so that nothing is held any more. */
  #closed = false;
  #established = false;
  /** When a GOAWAY was sent because of the connection's age. */
  #goawaySentMs: number | undefined;
  /** When the PING was sent that is not acknowledged yet. */
  #pingedMs: number | undefined;

  /** `maxAgeMs`: maximum age of this connection, including jitter. */
  constructor(
    socket: Socket,
    peer: string,
    maxAgeMs: number,
    handler: RequestHandler,
    options: H2ServerOptions,
    { turns, budget, lost }: SharedResources,
    onOutput: (connection: ServedConnection) => void,
  ) {
    this.#peer = peer;
    this.#maxAgeMs = maxAgeMs;
    this.#options = options;
    this.#turns = turns;
    this.#budget = budget;
    this.#lost = lost;
    this.#onOutput = onOutput;
    const { limits, nowMs } = options;
    this.#acceptedMs = nowMs();
    this.#sink = new SocketSink(socket);
    this.#connection = new H2Connection(this.#sink, handler, this, {
      peer,
      limits,
      nowMs,
      readQuantum: turns.readQuantum,
    });
    // The 'data' event is used because a shared read buffer (`onread`), which would save 2 to 6 %, is available for
    // accepted sockets only through Node's internals.
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    // The peer has read some of the output.
    socket.on('drain', () => this.#updateBudget());
    // HTTP/2 has no half-closed connections: a peer that closes its side does not wait for responses. Node closes our
    // side once all output is written.
    socket.once('end', () => {
      this.#peerEnded = true;
      if (this.#pendingBytes === 0) this.#endWithPeer();
    });
    socket.once('close', () => {
      this.#closed = true;
      this.#release();
    });
  }

  measure(): number {
    if (this.#sink.ended) return this.#sink.bufferedBytes;
    return (
      this.#connection.heldBytes + this.#pendingBytes + this.#sink.unreadBytes + this.#sink.bufferedBytes
    );
  }

  evict(): void {
    this.#options.onBadConnection(
      `the connection from ${this.#peer} was closed: all connections together used more than ` +
        `${this.#budget.maxBytes} bytes of memory, and this connection used the most`,
    );
    this.#discardInput();
    // A GOAWAY would be queued behind the data that the peer does not read, which is part of the held memory.
    if (this.#sink.bufferedBytes > 0) this.#sink.destroy();
    else this.#terminate();
    this.#release();
  }

  closeGracefully(): void {
    try {
      this.#connection.closeGracefully();
    } catch (error) {
      this.#onInternalError(error);
    }
  }

  get openStreams(): number {
    return this.#connection.openStreams;
  }

  /** Resets streams after the socket has closed; see {@link LostConnections}. */
  resetStreams(most: number): void {
    try {
      this.#connection.resetStreams(most);
    } catch (error) {
      this.#onInternalError(error);
    }
  }

  /** Sends the output that was announced by `onOutput` of the constructor. */
  flush(): void {
    try {
      this.#connection.flush();
    } catch (error) {
      this.#onInternalError(error);
    }
    this.#updateBudget();
  }

  /**
   * Closes the connection if it is silent, does not establish HTTP/2 in time, or is too old. Returns whether the
   * connection was closed.
   */
  sweep(nowMs: number): boolean {
    if (nowMs - this.#connection.lastReceivedMs >= IDLE_MS) this.#connection.trim();
    if (this.#account.bytes > 0 && !this.#closed) {
      // The socket may have written buffered bytes since the last update: Node.js emits 'drain' only after a full
      // buffer.
      this.#budget.set(this.#account, this.measure());
    }
    if (this.#sink.ended) return false;
    try {
      this.#enforceTimeouts(nowMs);
    } catch (error) {
      this.#onInternalError(error);
    }
    return this.#sink.ended;
  }

  onOutput(): void {
    this.#onOutput(this);
  }

  onEstablished(): void {
    this.#established = true;
  }

  onPingAck(): void {
    this.#pingedMs = undefined;
  }

  onProtocolError(_connection: H2Connection, error: string, greeted: boolean): void {
    const what = greeted ? 'was closed' : 'does not speak HTTP/2';
    this.#options.onBadConnection(`the connection from ${this.#peer} ${what}: ${error}`);
  }

  #receive(chunk: Buffer): void {
    // Data after the end is read, so that the end of the connection is detected, and dropped.
    if (this.#sink.ended) return;
    let end = 0;
    let turnIsOver = true;
    if (this.#pendingBytes === 0 && this.#turns.tryStart(this.#readerState)) {
      end = this.#read(chunk, 0);
      turnIsOver = this.#turns.finish(this.#readerState, end);
      this.#updateBudget();
      if (this.#sink.ended) return;
    }
    if (end < chunk.length) {
      if (this.#pendingBytes === 0) this.#readOffset = end;
      this.#pendingChunks.push(chunk);
      this.#pendingBytes += chunk.length;
      this.#updateBudget();
    } else {
      if (end >= FREED_BYTES) freeBuffer(chunk);
      if (!turnIsOver) return;
    }
    this.#sink.pauseReading();
    this.#turns.wait(this.#readerState);
  }

  /** Returns the offset in `chunk` at which the engine stopped. */
  #read(chunk: Buffer, from: number): number {
    try {
      return this.#connection.receive(chunk, from);
    } catch (error) {
      this.#onInternalError(error);
      return chunk.length;
    }
  }

  /** Reads pending data for one slice; see {@link ReaderState.resumeReading}. */
  #resumeReading(): boolean {
    const chunk = this.#pendingChunks[0];
    if (chunk !== undefined && !this.#sink.ended) {
      const end = this.#read(chunk, this.#readOffset);
      this.#turns.finish(this.#readerState, end - this.#readOffset);
      this.#readOffset = end;
      if (end === chunk.length) {
        this.#pendingChunks.shift();
        this.#readOffset = 0;
        this.#pendingBytes -= chunk.length;
        freeBuffer(chunk);
      }
    }
    if (this.#sink.ended) this.#discardInput();
    this.#updateBudget();
    if (this.#pendingBytes > 0) return true;
    this.#sink.resumeReading();
    if (this.#peerEnded) this.#endWithPeer();
    return false;
  }

  /** Updates the memory budget, which may evict this connection or others. */
  #updateBudget(): void {
    if (this.#closed) return;
    this.#budget.set(this.#account, this.measure());
    this.#budget.enforce();
  }

  /** Discards the data that waits to be read. */
  #discardInput(): void {
    for (const chunk of this.#pendingChunks) freeBuffer(chunk);
    this.#pendingChunks = [];
    this.#pendingBytes = 0;
  }

  #endWithPeer(): void {
    this.#release();
    this.#sink.end();
    // Output that the peer has not read yet is still held.
    this.#updateBudget();
  }

  #terminate(): void {
    try {
      this.#connection.terminate(
        ERROR_CODE.ENHANCE_YOUR_CALM,
        'the server reached its memory limit for connections',
      );
    } catch (error) {
      this.#onInternalError(error);
    }
  }

  /** Frees all memory after the connection has ended. */
  #release(): void {
    this.#discardInput();
    this.#turns.remove(this.#readerState);
    this.#lost.add(this);
    this.#budget.set(this.#account, 0);
  }

  #onInternalError(error: unknown): void {
    this.#options.onError(error);
    this.#sink.destroy();
  }

  #enforceTimeouts(nowMs: number): void {
    const { handshakeTimeoutMs, maxConnectionAgeGraceMs } = this.#options;
    if (!this.#established) {
      if (nowMs - this.#acceptedMs < handshakeTimeoutMs) return;
      this.#options.onBadConnection(
        `the connection from ${this.#peer} did not start HTTP/2 within ${handshakeTimeoutMs} ms`,
      );
      this.#sink.destroy();
    } else if (this.#goawaySentMs !== undefined && nowMs - this.#goawaySentMs >= maxConnectionAgeGraceMs) {
      this.#connection.terminate(ERROR_CODE.NO_ERROR, 'max_age');
    } else {
      if (this.#goawaySentMs === undefined && nowMs - this.#acceptedMs >= this.#maxAgeMs) {
        this.#goawaySentMs = nowMs;
        this.#connection.closeGracefully();
      }
      this.#keepAlive(nowMs);
    }
  }

  /** A peer that does not read also counts as silent, because its data is not read meanwhile. */
  #keepAlive(nowMs: number): void {
    const { keepAliveIntervalMs, keepAliveTimeoutMs } = this.#options;
    const receivedMs = this.#connection.lastReceivedMs;
    if (this.#pingedMs !== undefined && receivedMs > this.#pingedMs) this.#pingedMs = undefined;
    if (this.#pingedMs === undefined) {
      if (nowMs - receivedMs < keepAliveIntervalMs) return;
      this.#pingedMs = nowMs;
      this.#connection.ping();
    } else if (nowMs - this.#pingedMs >= keepAliveTimeoutMs) {
      this.#sink.destroy();
    }
  }
}

/** Maximum number of streams reset in one turn of the event loop. This takes about a millisecond. */
const RESETS_PER_TURN = 500;

/** A connection whose socket has closed. */
export interface LostConnection {
  readonly openStreams: number;
  /** Resets at most `most` streams. */
  resetStreams(maxStreams: number): void;
}

/**
 * Resets the streams of connections whose sockets have closed. Peers choose when connections end: thousands may end in
 * the same turn of the event loop, each with its maximum number of streams. A few streams are reset immediately, the
 * rest in later turns.
 */
export class LostConnections {
  readonly #turns: TurnScheduler<LostConnection>;

  constructor(nextTurn?: NextTurn) {
    const serve = (connection: LostConnection) => this.add(connection);
    this.#turns = new TurnScheduler({ budget: RESETS_PER_TURN, serve, nextTurn });
  }

  /** Number of connections with open streams. */
  get waiting(): number {
    return this.#turns.size;
  }

  /** Resets the streams of a connection that was lost, now or in later turns. */
  add(connection: LostConnection): void {
    const maxStreams = this.#turns.remaining;
    this.#turns.spend(Math.min(maxStreams, connection.openStreams));
    connection.resetStreams(maxStreams);
    if (connection.openStreams > 0) this.#turns.wait(connection);
  }
}

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
