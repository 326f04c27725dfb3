import { connect, type Socket } from 'node:net';
import type { AttackConnection, Tally } from './attack.js';

/** Time after which the attacker reconnects if the server has closed the connection. */
const RECONNECT_MS = 5;

/** A connection to 127.0.0.1 that reconnects whenever the server closes it, until it is stopped. */
export abstract class AttackSocket implements AttackConnection {
  protected socket: Socket;
  protected stopped = false;
  protected readonly tally: Tally;
  private readonly port: number;
  private bytesBefore = 0;

  constructor(port: number, tally: Tally) {
    this.port = port;
    this.tally = tally;
    this.socket = this.open();
  }

  /** Starts the attack from the beginning on a new connection. */
  protected abstract begin(): void;
  protected abstract read(chunk: Buffer): void;
  /** Continues to send when the socket can accept more data. */
  protected abstract pump(): void;

  abstract get done(): boolean;
  /** Whether the attack waits for no answer. */
  protected abstract get answered(): boolean;

  get idle(): boolean {
    return this.socket.destroyed || (this.socket.writableLength === 0 && this.answered);
  }

  get bytes(): number {
    return this.bytesBefore + acceptedBytes(this.socket);
  }

  stop(): void {
    this.stopped = true;
  }

  destroy(): void {
    this.stopped = true;
    this.socket.destroy();
  }

  private open(): Socket {
    const socket = connect({ port: this.port, host: '127.0.0.1', noDelay: true });
    socket.on('error', () => {});
    socket.on('connect', () => this.begin());
    socket.on('data', (chunk) => this.read(chunk));
    socket.on('drain', () => this.pump());
    socket.on('end', () => socket.destroy());
    socket.on('close', () => {
      if (this.stopped) return;
      this.tally.add('closed');
      this.bytesBefore += acceptedBytes(socket);
      setTimeout(() => {
        if (!this.stopped) this.socket = this.open();
      }, RECONNECT_MS);
    });
    return socket;
  }
}

function acceptedBytes(socket: Socket): number {
  return Math.max(0, socket.bytesWritten - socket.writableLength);
}
