import { connect, type Socket } from 'node:net';
import { closeLater } from '../process/close-later.js';
import { waitFor } from '../process/wait-for.js';
import {
  ACK,
  callFields,
  END_STREAM,
  FrameReader,
  frame,
  headers,
  PREFACE,
  type RawFrame,
  SETTINGS_ACK,
  settings,
  TYPE,
} from './h2-frames.js';
import { prefixed } from './http2-client.js';

/** Encodes a HEADERS frame that starts a gRPC call. */
export function callFrame(streamId: number, path: string): Buffer {
  return headers(streamId, 0, ...callFields(path));
}

/** Encodes a DATA frame with an empty message that ends the request. */
export function emptyMessageFrame(streamId: number): Buffer {
  return frame(TYPE.DATA, END_STREAM, streamId, prefixed(Buffer.alloc(0)));
}

/** A client that sends frames that no well-behaved client sends, and keeps the received frames. */
export class RawHttp2Client {
  readonly frames: RawFrame[] = [];
  readonly socket: Socket;
  closed = false;
  #pingsAnswered = 0;

  /** Connects and sends the preface and empty settings. */
  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    closeLater(this.socket, (socket) => socket.destroy());
    this.socket.on('error', () => {});
    this.socket.on('close', () => {
      this.closed = true;
    });
    const reader = new FrameReader();
    this.socket.on('data', (chunk) => this.frames.push(...reader.read(chunk)));
    this.socket.write(PREFACE);
    this.send(settings());
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
    await this.waitForFrame(TYPE.SETTINGS);
    this.send(SETTINGS_ACK);
  }

  /** Answers the PINGs received since the last call. */
  acknowledgePings(): void {
    const pings = this.frames.filter(({ type, flags }) => type === TYPE.PING && flags === 0);
    for (const { payload } of pings.slice(this.#pingsAnswered)) this.send(frame(TYPE.PING, ACK, 0, payload));
    this.#pingsAnswered = pings.length;
  }
}
