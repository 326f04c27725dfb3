import type { Socket } from 'node:net';
import { H2Connection } from './connection.js';
import type { ConnectionEvents, OwnedConnection } from './connection-owner.js';
import { ERROR_CODE } from './error-code.js';
import type { H2ServerOptions } from './h2-server.js';
import type { RequestHandler } from './request-handler.js';
import { SocketSink } from './socket-sink.js';

/**
 * A connection of a server together with its socket and the times at which something is due. What the engine or its handler throws, which
 * would be a mistake of ours, costs this connection only.
 */
export class ServedConnection implements ConnectionEvents {
  readonly #socket: Socket;
  readonly #peer: string;
  readonly #options: H2ServerOptions;
  readonly #onOutput: (connection: ServedConnection) => void;
  readonly #sink: SocketSink;
  readonly #connection: H2Connection;
  readonly #acceptedMs: number;
  readonly #maxAgeMs: number;
  #greeted = false;
  /** When the connection was told that it is too old. */
  #retiredMs: number | undefined;
  /** When a PING was sent that is not answered yet. */
  #pingedMs: number | undefined;

  /** `maxAgeMs` is this connection's own, jitter included. */
  constructor(
    socket: Socket,
    peer: string,
    maxAgeMs: number,
    handler: RequestHandler,
    options: H2ServerOptions,
    onOutput: (connection: ServedConnection) => void,
  ) {
    this.#socket = socket;
    this.#peer = peer;
    this.#maxAgeMs = maxAgeMs;
    this.#options = options;
    this.#onOutput = onOutput;
    const { limits, nowMs } = options;
    this.#acceptedMs = nowMs();
    this.#sink = new SocketSink(socket);
    this.#connection = new H2Connection(this.#sink, handler, this, { peer, limits, nowMs });
    // 'data' events: one read buffer for all sockets (`onread`) saves 2 to 6 % but can be had for accepted sockets by Node's internals only.
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    // HTTP/2 knows no half-closed connection: a peer that closes its side waits for nothing any more. Node closes ours once all is written.
    socket.once('end', () => {
      this.#lose();
      this.#sink.end();
    });
    socket.once('close', () => this.#lose());
  }

  closeGracefully(): void {
    try {
      this.#connection.closeGracefully();
    } catch (error) {
      this.#onMistake(error);
    }
  }

  /** Sends what was announced by `onOutput` of the constructor. */
  flush(): void {
    try {
      this.#connection.flush();
    } catch (error) {
      this.#onMistake(error);
    }
  }

  /** Does what is due: ends connections that are silent, too slow to begin, or too old. */
  sweep(nowMs: number): void {
    if (this.#sink.ended) return;
    try {
      this.#doWhatIsDue(nowMs);
    } catch (error) {
      this.#onMistake(error);
    }
  }

  onOutput(): void {
    this.#onOutput(this);
  }

  onGreeted(): void {
    this.#greeted = true;
  }

  onAck(): void {
    this.#pingedMs = undefined;
  }

  onBroken(_connection: OwnedConnection, error: string, greeted: boolean): void {
    const what = greeted ? 'was ended' : 'does not speak HTTP/2';
    this.#options.onBadConnection(`the connection from ${this.#peer} ${what}: ${error}`);
  }

  #receive(chunk: Buffer): void {
    // What comes after the end is read, so that the end arrives, and dropped.
    if (this.#sink.ended) return;
    this.#sink.countRead(chunk.length);
    try {
      this.#connection.receive(chunk);
    } catch (error) {
      this.#onMistake(error);
    }
  }

  #lose(): void {
    try {
      this.#connection.lost();
    } catch (error) {
      this.#onMistake(error);
    }
  }

  #onMistake(error: unknown): void {
    this.#options.onError(error);
    this.#sink.destroy();
  }

  #doWhatIsDue(nowMs: number): void {
    const { handshakeTimeoutMs, maxConnectionAgeGraceMs } = this.#options;
    if (!this.#greeted) {
      if (nowMs - this.#acceptedMs < handshakeTimeoutMs) return;
      this.#options.onBadConnection(
        `the connection from ${this.#peer} did not begin HTTP/2 within ${handshakeTimeoutMs} ms`,
      );
      this.#sink.destroy();
    } else if (this.#retiredMs !== undefined && nowMs - this.#retiredMs >= maxConnectionAgeGraceMs) {
      this.#connection.terminate(ERROR_CODE.NO_ERROR, 'max_age');
    } else {
      if (this.#retiredMs === undefined && nowMs - this.#acceptedMs >= this.#maxAgeMs) {
        this.#retiredMs = nowMs;
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
      this.#socket.destroy();
    }
  }
}
