import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { waitFor } from '../process/wait-for.js';
import {
  ACK,
  END_HEADERS,
  FrameReader,
  PADDED,
  PREFACE,
  PRIORITY,
  type RawFrame,
  SETTINGS_ACK,
  settings,
  TYPE,
} from './h2-frames.js';

const HEADER_TABLE_SIZE = 1;

/** An HTTP/2 server that keeps the header blocks of one client at a time, and answers only SETTINGS. */
export class RecordingHttp2Server {
  /** Complete header blocks, in order of arrival. */
  readonly blocks: Buffer[] = [];
  port = 0;
  #acks = 0;
  #settingsSent = 0;
  #socket: Socket | undefined;
  readonly #reader = new FrameReader(PREFACE.length);
  #pending: Buffer[] = [];
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((socket) => {
      this.#socket = socket;
      socket.on('error', () => {});
      socket.on('data', (chunk) => {
        for (const one of this.#reader.read(chunk)) this.#take(one);
      });
      this.#sendSettings();
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
    this.#sendSettings([HEADER_TABLE_SIZE, bytes]);
    await waitFor('the acknowledgement of SETTINGS', () => this.#acks === this.#settingsSent);
  }

  async close(): Promise<void> {
    this.#socket?.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #sendSettings(...pairs: [identifier: number, value: number][]): void {
    this.#settingsSent += 1;
    this.#socket?.write(settings(...pairs));
  }

  #take({ type, flags, payload }: RawFrame): void {
    if (type === TYPE.SETTINGS && (flags & ACK) !== 0) this.#acks += 1;
    else if (type === TYPE.SETTINGS) this.#socket?.write(SETTINGS_ACK);
    if (type !== TYPE.HEADERS && type !== TYPE.CONTINUATION) return;
    let start = 0;
    let end = payload.length;
    if (type === TYPE.HEADERS && (flags & PADDED) !== 0) {
      end -= payload.readUInt8(0);
      start += 1;
    }
    if (type === TYPE.HEADERS && (flags & PRIORITY) !== 0) start += 5;
    this.#pending.push(Buffer.from(payload.subarray(start, end)));
    if ((flags & END_HEADERS) === 0) return;
    this.blocks.push(Buffer.concat(this.#pending));
    this.#pending = [];
  }
}
