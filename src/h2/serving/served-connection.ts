import type { Socket } from 'node:net';
import { freeBuffer } from '../../runtime/free-buffer.js';
import { H2Connection } from '../connection.js';
import type { ConnectionEvents, OwnedConnection } from '../connection-owner.js';
import { ERROR_CODE } from '../error-code.js';
import type { RequestHandler } from '../request-handler.js';
import { type BufferBudget, MemoryAccount, type MemoryOwner } from './buffer-budget.js';
import type { LostConnection, LostConnections } from './lost-connections.js';
import { ReaderState, type ReadScheduler } from './read-scheduler.js';
import type { H2ServerOptions } from './server-options.js';
import { SocketSink } from './socket-sink.js';

/** A connection that was silent for so long gives up what it only keeps for later. Milliseconds. */
const IDLE_MS = 1000;
/** Chunks of so many bytes are freed as soon as they are read; shorter ones are as cheap to leave to the collector. */
const FREED_BYTES = 4096;

/** What the connections of a server share. */
export interface SharedResources {
  readonly turns: ReadScheduler;
  readonly budget: BufferBudget;
  readonly lost: LostConnections;
}

/**
 * A connection of a server together with its socket and the times at which something is due. What the engine or its
 * handler throws, which would be a mistake of ours, costs this connection only.
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
  /** What came and waits for its turn, oldest first; of the first, what stands before {@link #readTo} was read. */
  #pendingChunks: Buffer[] = [];
  #readOffset = 0;
  #pendingBytes = 0;
  /** The peer has closed its side, and what came before that is not read yet. */
  #peerEnded = false;
  /** The socket is closed: nothing is held any more. */
  #closed = false;
  #established = false;
  /** When the connection was told that it is too old. */
  #goawaySentMs: number | undefined;
  /** When a PING was sent that is not answered yet. */
  #pingedMs: number | undefined;

  /** `maxAgeMs` is this connection's own, jitter included. */
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
      workSlice: turns.workSlice,
    });
    // 'data' events: one read buffer for all sockets (`onread`) saves 2 to 6 % but can be had for accepted sockets by
    // Node's internals only.
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    // The peer has read on.
    socket.on('drain', () => this.#updateBudget());
    // HTTP/2 knows no half-closed connection: a peer that closes its side waits for nothing any more. Node closes ours
    // once all is written.
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
      `the connection from ${this.#peer} was ended: it held the most when all connections together ` +
        `held more than ${this.#budget.maxBytes} bytes`,
    );
    this.#discardInput();
    // A GOAWAY would wait behind what the peer does not read, and that is held.
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

  /** Streams that are open. */
  get openStreams(): number {
    return this.#connection.openStreams;
  }

  /** Its socket is gone; see {@link LostConnections}. */
  resetStreams(most: number): void {
    try {
      this.#connection.resetStreams(most);
    } catch (error) {
      this.#onInternalError(error);
    }
  }

  /** Sends what was announced by `onOutput` of the constructor. */
  flush(): void {
    try {
      this.#connection.flush();
    } catch (error) {
      this.#onInternalError(error);
    }
    this.#updateBudget();
  }

  /**
   * Does what is due: ends connections that are silent, too slow to begin, or too old. Returns whether it has ended
   * this one.
   */
  sweep(nowMs: number): boolean {
    if (nowMs - this.#connection.lastReceivedMs >= IDLE_MS) this.#connection.trim();
    if (this.#account.bytes > 0 && !this.#closed) {
      // What the socket had not written when it was counted last may have left since: Node.js tells that of more than a
      // full buffer only.
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

  onProtocolError(_connection: OwnedConnection, error: string, greeted: boolean): void {
    const what = greeted ? 'was ended' : 'does not speak HTTP/2';
    this.#options.onBadConnection(`the connection from ${this.#peer} ${what}: ${error}`);
  }

  #receive(chunk: Buffer): void {
    // What comes after the end is read, so that the end arrives, and dropped.
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

  /** Returns where in `chunk` the engine has stopped. */
  #read(chunk: Buffer, from: number): number {
    try {
      return this.#connection.receive(chunk, from);
    } catch (error) {
      this.#onInternalError(error);
      return chunk.length;
    }
  }

  /** A turn of this connection; see {@link ReaderState.resumeReading}. */
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

  /** Tells the budget what is held, which may end this connection, or others. */
  #updateBudget(): void {
    if (this.#closed) return;
    this.#budget.set(this.#account, this.measure());
    this.#budget.enforce();
  }

  /** Forgets what waits to be read. */
  #discardInput(): void {
    for (const chunk of this.#pendingChunks) freeBuffer(chunk);
    this.#pendingChunks = [];
    this.#pendingBytes = 0;
  }

  #endWithPeer(): void {
    this.#release();
    this.#sink.end();
    // What the peer has not read yet is held on.
    this.#updateBudget();
  }

  #terminate(): void {
    try {
      this.#connection.terminate(ERROR_CODE.ENHANCE_YOUR_CALM, 'the server holds too much for its peers');
    } catch (error) {
      this.#onInternalError(error);
    }
  }

  /** Nothing comes or goes any more. */
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
        `the connection from ${this.#peer} did not begin HTTP/2 within ${handshakeTimeoutMs} ms`,
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

  /** A peer that does not read counts as silent too: it is not read from meanwhile. */
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
