import { connect, type Socket } from 'node:net';
import type { AttackConnection, Tally } from './attack.js';

/** A server that ends connections is called again after so long. */
const AGAIN_MS = 5;

/** A connection to 127.0.0.1 that is opened anew when the server ends it, until it is stopped. */
export abstract class AttackSocket implements AttackConnection {
  protected socket: Socket;
  protected stopped = false;
  protected readonly tally: Tally;
  private readonly port: number;
  private bytesBefore = 0;
  opened = 0;

  constructor(port: number, tally: Tally) {
    this.port = port;
    this.tally = tally;
    this.socket = this.open();
  }

  /** The connection stands: everything begins anew. */
  protected abstract begin(): void;
  protected abstract read(chunk: Buffer): void;
  /** The socket takes more. */
  protected abstract pump(): void;

  abstract get done(): boolean;
  protected abstract get answered(): boolean;

  get quiet(): boolean {
    return this.socket.destroyed || (this.socket.writableLength === 0 && this.answered);
  }

  get bytes(): number {
    return this.bytesBefore + bytesTaken(this.socket);
  }

  stop(): void {
    this.stopped = true;
  }

  destroy(): void {
    this.stopped = true;
    this.socket.destroy();
  }

  private open(): Socket {
    this.opened++;
    const socket = connect({ port: this.port, host: '127.0.0.1', noDelay: true });
    socket.on('error', () => {});
    socket.on('connect', () => this.begin());
    socket.on('data', (chunk) => this.read(chunk));
    socket.on('drain', () => this.pump());
    socket.on('end', () => socket.destroy());
    socket.on('close', () => {
      if (this.stopped) return;
      this.tally.add('closed');
      this.bytesBefore += bytesTaken(socket);
      setTimeout(() => {
        if (!this.stopped) this.socket = this.open();
      }, AGAIN_MS);
    });
    return socket;
  }
}

function bytesTaken(socket: Socket): number {
  return Math.max(0, socket.bytesWritten - socket.writableLength);
}
