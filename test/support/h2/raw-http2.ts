import { connect, type Socket } from 'node:net';
import { waitFor } from '../process/wait-for.js';

/** Frame types of RFC 9113, section 6, that tests use. */
export const FRAME = { DATA: 0, HEADERS: 1, RST_STREAM: 3, SETTINGS: 4, PING: 6, GOAWAY: 7 } as const;
const END_STREAM = 1;
const END_HEADERS = 4;

export interface RawFrame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/** Encodes a frame (RFC 9113, section 4.1). */
export function frame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.alloc(9 + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes.writeUInt8(type, 3);
  bytes.writeUInt8(flags, 4);
  bytes.writeUInt32BE(streamId, 5);
  bytes.set(payload, 9);
  return bytes;
}

/** Encodes a HEADERS frame that starts a gRPC call. The path must be shorter than 127 bytes. */
export function callFrame(streamId: number, path: string): Buffer {
  const headers: [string, string][] = [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    [':authority', 'test'],
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
  ];
  // Literal header fields without indexing, new names (RFC 7541, section 6.2.2).
  const block = headers.flatMap(([name, value]) => [
    Buffer.of(0, name.length),
    Buffer.from(name),
    Buffer.of(value.length),
    Buffer.from(value),
  ]);
  return frame(FRAME.HEADERS, END_HEADERS, streamId, Buffer.concat(block));
}

/** Encodes a DATA frame with an empty message that ends the request. */
export function emptyMessageFrame(streamId: number): Buffer {
  return frame(FRAME.DATA, END_STREAM, streamId, Buffer.alloc(5));
}

/** A client that sends frames that no well-behaved client sends, and keeps the received frames. */
export class RawHttp2Client {
  readonly frames: RawFrame[] = [];
  readonly socket: Socket;
  closed = false;
  #rest: Buffer = Buffer.alloc(0);
  #pingsAnswered = 0;

  /** Connects and sends the preface and empty settings. */
  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.on('error', () => {});
    this.socket.on('close', () => {
      this.closed = true;
    });
    this.socket.on('data', (chunk) => this.#read(chunk));
    this.socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    this.send(frame(FRAME.SETTINGS, 0, 0, Buffer.alloc(0)));
  }

  send(bytes: Uint8Array): void {
    this.socket.write(bytes);
  }

  /** Waits for a frame of this type, on this stream if one is given. */
  waitForFrame(type: number, streamId?: number): Promise<RawFrame> {
    return waitFor(`a frame of type ${type}`, () =>
      this.frames.find((got) => got.type === type && (streamId === undefined || got.streamId === streamId)),
    );
  }

  /** Acknowledges the server's settings, which makes its limits effective. */
  async acknowledgeSettings(): Promise<void> {
    await this.waitForFrame(FRAME.SETTINGS);
    this.send(frame(FRAME.SETTINGS, 1, 0, Buffer.alloc(0)));
  }

  /** Answers the PINGs received since the last call. */
  acknowledgePings(): void {
    const pings = this.frames.filter(({ type, flags }) => type === FRAME.PING && flags === 0);
    for (const { payload } of pings.slice(this.#pingsAnswered)) this.send(frame(FRAME.PING, 1, 0, payload));
    this.#pingsAnswered = pings.length;
  }

  destroy(): void {
    this.socket.destroy();
  }

  #read(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= 9) {
      const length = this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < 9 + length) return;
      this.frames.push({
        type: this.#rest.readUInt8(3),
        flags: this.#rest.readUInt8(4),
        streamId: this.#rest.readUInt32BE(5),
        payload: this.#rest.subarray(9, 9 + length),
      });
      this.#rest = this.#rest.subarray(9 + length);
    }
  }
}
