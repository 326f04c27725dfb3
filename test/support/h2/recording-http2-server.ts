import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { waitFor } from '../process/wait-for.js';
import { FRAME, frame } from './raw-http2.js';

const CONTINUATION = 9;
const ACK = 1;
const END_HEADERS = 4;
const PADDED = 8;
const PRIORITY = 0x20;
const PREFACE_BYTES = 24;
const HEADER_TABLE_SIZE = 1;

/** An HTTP/2 server that keeps the header blocks of one client at a time, and answers only SETTINGS. */
export class RecordingHttp2Server {
  /** Complete header blocks, in order of arrival. */
  readonly blocks: Buffer[] = [];
  port = 0;
  #acks = 0;
  #settingsSent = 0;
  #socket: Socket | undefined;
  #skip = PREFACE_BYTES;
  #rest: Buffer = Buffer.alloc(0);
  #pending: Buffer[] = [];
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((socket) => {
      this.#socket = socket;
      socket.on('error', () => {});
      socket.on('data', (chunk) => this.#read(chunk));
      this.#sendSettings(Buffer.alloc(0));
    });
  }

  static async start(): Promise<RecordingHttp2Server> {
    const server = new RecordingHttp2Server();
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    server.port = (server.#server.address() as AddressInfo).port;
    return server;
  }

  /** Sends SETTINGS_HEADER_TABLE_SIZE and waits until the client applies it. */
  async setHeaderTableBytes(bytes: number): Promise<void> {
    const payload = Buffer.alloc(6);
    payload.writeUInt16BE(HEADER_TABLE_SIZE, 0);
    payload.writeUInt32BE(bytes, 2);
    this.#sendSettings(payload);
    await waitFor('the acknowledgement of SETTINGS', () => this.#acks === this.#settingsSent);
  }

  async close(): Promise<void> {
    this.#socket?.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #sendSettings(payload: Buffer): void {
    this.#settingsSent += 1;
    this.#socket?.write(frame(FRAME.SETTINGS, 0, 0, payload));
  }

  #read(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    if (this.#rest.length < this.#skip) return;
    this.#rest = this.#rest.subarray(this.#skip);
    this.#skip = 0;
    while (this.#rest.length >= 9) {
      const length = this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < 9 + length) return;
      this.#take(this.#rest.readUInt8(3), this.#rest.readUInt8(4), this.#rest.subarray(9, 9 + length));
      this.#rest = this.#rest.subarray(9 + length);
    }
  }

  #take(type: number, flags: number, payload: Buffer): void {
    if (type === FRAME.SETTINGS && (flags & ACK) !== 0) this.#acks += 1;
    else if (type === FRAME.SETTINGS) this.#socket?.write(frame(FRAME.SETTINGS, ACK, 0, Buffer.alloc(0)));
    if (type !== FRAME.HEADERS && type !== CONTINUATION) return;
    let start = 0;
    let end = payload.length;
    if (type === FRAME.HEADERS && (flags & PADDED) !== 0) {
      end -= payload.readUInt8(0);
      start += 1;
    }
    if (type === FRAME.HEADERS && (flags & PRIORITY) !== 0) start += 5;
    this.#pending.push(Buffer.from(payload.subarray(start, end)));
    if ((flags & END_HEADERS) === 0) return;
    this.blocks.push(Buffer.concat(this.#pending));
    this.#pending = [];
  }
}
