import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

/** Maximum number of bytes that Node's HTTP parser gets at once. */
const PIECE_BYTES = 1024;
/** Maximum time in milliseconds that reading from all HTTP connections takes in a turn of the event loop. */
export const TURN_MS = 1;

let turnEndsMs: number | undefined;

/** Calls `read` in a later turn of the event loop, after everybody who called earlier, when the turn has time left. */
function inTurn(read: (untilMs: number) => void): void {
  setImmediate(() => {
    const now = performance.now();
    if (turnEndsMs === undefined) {
      turnEndsMs = now + TURN_MS;
      // This is the first immediate of the next turn.
      setImmediate(() => {
        turnEndsMs = undefined;
      });
    }
    if (now < turnEndsMs) read(turnEndsMs);
    else inTurn(read);
  });
}

/**
 * A socket from which Node's HTTP parser gets small pieces, within the time of a turn. Otherwise, Node parses all that
 * it has read, and 64 KB are 3,600 requests or 11,000 chunks of a body, which delay all other callers by 20 to 80 ms.
 */
export class PacedSocket extends Duplex {
  readonly socket: Socket;
  /** The latest response. */
  response: ServerResponse | undefined;
  #wantsData = false;
  #isWaiting = false;

  constructor(socket: Socket) {
    super({ allowHalfOpen: true });
    this.socket = socket;
    socket.on('readable', () => this.#awaitTurn());
    socket.on('end', () => this.push(null));
    socket.on('timeout', () => this.emit('timeout'));
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
  }

  /** Sets the time without traffic after which Node closes the connection. */
  setTimeout(ms: number): this {
    this.socket.setTimeout(ms);
    return this;
  }

  /** Node calls this method to close a connection after its last response. */
  destroySoon(): void {
    this.end(() => this.destroy());
  }

  override _read(): void {
    this.#wantsData = true;
    this.#awaitTurn();
  }

  override _write(data: Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.socket.write(data, encoding, done);
  }

  override _final(done: () => void): void {
    this.socket.end(done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.socket.destroy();
    done(error);
  }

  #awaitTurn(): void {
    if (this.#isWaiting || !this.#wantsData) return;
    this.#isWaiting = true;
    inTurn((untilMs) => {
      this.#isWaiting = false;
      do {
        const piece = this.socket.read(Math.min(PIECE_BYTES, this.socket.readableLength)) as Buffer | null;
        if (piece === null) return;
        this.#wantsData = this.push(piece);
      } while (this.#wantsData && performance.now() < untilMs);
      this.#awaitTurn();
    });
  }
}
