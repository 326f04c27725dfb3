import { test } from '@jest/globals';
import { type ByteSink, type ConnectionEvents, H2Connection } from '../../../src/h2/connection.js';
import { ERROR_CODE } from '../../../src/h2/failure.js';
import { HpackDecoder } from '../../../src/h2/hpack/decoder.js';
import type { H2Limits } from '../../../src/h2/limits.js';
import type { RequestHandler, ServerStream } from '../../../src/h2/request-handler.js';
import { bytesBody } from './bytes-body.js';
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  FrameReader,
  OK_HEADERS,
  OK_TRAILERS,
  PREFACE,
  type RawFrame,
  SETTINGS_ACK,
  settings,
  TYPE,
} from './h2-frames.js';
import { TEST_LIMITS } from './h2-limits.js';

export * from './h2-frames.js';

const TYPE_NAMES = Object.keys(TYPE);
const CODE_NAMES = Object.keys(ERROR_CODE);

/** A sink that keeps the written bytes. Tests set how many of them the peer has not read. */
export class MemorySink implements ByteSink {
  readonly written: Buffer[] = [];
  bufferedBytes = 0;
  keepsUp = true;
  closed: 'no' | 'ended' | 'destroyed' = 'no';

  write(bytes: Buffer): boolean {
    if (this.closed !== 'no') throw new Error('written after the end');
    this.written.push(bytes);
    if (!this.keepsUp) this.bufferedBytes += bytes.length;
    return this.keepsUp;
  }

  end(): void {
    if (this.closed !== 'no') throw new Error('ended twice');
    this.closed = 'ended';
  }

  destroy(): void {
    this.closed = 'destroyed';
  }
}

/** A handler that records its calls and runs a test's callbacks. */
class RecordingHandler implements RequestHandler {
  readonly log: string[] = [];
  readonly streams = new Map<number, ServerStream>();
  /** Called when a request is complete, for any reason. */
  onComplete: (stream: ServerStream) => void = () => {};
  /** Called for the head of a request. */
  onHead: (stream: ServerStream) => void = () => {};
  /** Called for each piece of body. */
  onBody: (stream: ServerStream, bytes: number) => void = () => {};
  onEmpty: (stream: ServerStream) => void = () => {};

  onRequest(stream: ServerStream, endStream: boolean): void {
    this.log.push(`request ${stream.id} ${stream.head.method} ${stream.head.path}${endStream ? ' end' : ''}`);
    this.streams.set(stream.id, stream);
    this.onHead(stream);
    if (endStream) this.onComplete(stream);
  }

  onData(stream: ServerStream, chunk: Buffer, start: number, end: number, endStream: boolean): void {
    this.log.push(
      `data ${stream.id} ${short(chunk.toString('latin1', start, end))}${endStream ? ' end' : ''}`,
    );
    this.onBody(stream, end - start);
    if (endStream) this.onComplete(stream);
  }

  onTrailers(stream: ServerStream): void {
    this.log.push(`trailers ${stream.id}`);
    this.onComplete(stream);
  }

  onDrained(stream: ServerStream): void {
    this.log.push(`drained ${stream.id}`);
    this.onEmpty(stream);
  }

  onReset(stream: ServerStream, errorCode: number): void {
    this.log.push(`reset ${stream.id} ${CODE_NAMES[errorCode]}`);
  }

  /** Returns the calls recorded since the last call of this method. */
  take(): string[] {
    return this.log.splice(0);
  }
}

function short(body: string): string {
  return body.length > 20 ? `${body.length} bytes` : `"${body}"`;
}

/** A way to split the bytes for the connection into chunks. */
export interface ChunkSplit {
  readonly name: string;
  cut(bytes: Buffer): Buffer[];
}

const WHOLE: ChunkSplit = { name: 'whole', cut: (bytes) => [bytes] };
const BYTE_BY_BYTE: ChunkSplit = {
  name: 'byte by byte',
  // Each chunk is a copy that the peer below overwrites afterwards, because no one may keep a chunk.
  cut: (bytes) => Array.from(bytes, (byte) => Buffer.of(byte)),
};

function randomSplit(seed: number): ChunkSplit {
  return {
    name: `random cuts, seed ${seed}`,
    cut(bytes) {
      let state = seed;
      const chunks: Buffer[] = [];
      for (let at = 0; at < bytes.length; ) {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        const length = 1 + ((state >>> 8) % (state % 3 === 0 ? 200 : 14));
        chunks.push(Buffer.from(bytes.subarray(at, at + length)));
        at += length;
      }
      return chunks;
    },
  };
}

export const CHUNK_SPLITS: readonly ChunkSplit[] = [
  WHOLE,
  BYTE_BY_BYTE,
  randomSplit(1),
  randomSplit(20_260_801),
];

/** One connection of the engine, with a test as its peer. */
export class H2Peer {
  readonly sink = new MemorySink();
  readonly handler = new RecordingHandler();
  readonly connection: H2Connection;
  /** Events that the connection reported to its owner. */
  readonly events: string[] = [];
  nowMs = 1000;
  private outputWaits = false;
  private readonly cut: ChunkSplit;
  private readonly decoder = new HpackDecoder({ maxTableBytes: 4096, maxListBytes: 65_536 });

  constructor(limits: Partial<H2Limits> = {}, cut: ChunkSplit = WHOLE) {
    this.cut = cut;
    const events: ConnectionEvents = {
      onOutput: () => {
        if (this.outputWaits) throw new Error('output was announced twice');
        this.outputWaits = true;
      },
      onEstablished: () => this.events.push('greeted'),
      onPingAck: () => this.events.push('ack'),
      onProtocolError: (_connection, error, greeted) =>
        this.events.push(`broken: ${error}${greeted ? '' : ' (not greeted)'}`),
    };
    this.connection = new H2Connection(this.sink, this.handler, events, {
      peer: '127.0.0.1:1',
      limits: { ...TEST_LIMITS, ...limits },
      nowMs: () => this.nowMs,
    });
  }

  /** Sends the preface, SETTINGS and an acknowledgement, and discards the answers. */
  greet(...pairs: [identifier: number, value: number][]): this {
    this.send(PREFACE, settings(...pairs), SETTINGS_ACK);
    this.received();
    return this;
  }

  /** Sends bytes to the connection, split as the test's variant requires. */
  send(...parts: Buffer[]): void {
    for (const chunk of this.cut.cut(Buffer.concat(parts))) {
      this.connection.receive(chunk);
      chunk.fill(0xee); // code that kept a chunk sees this value
    }
  }

  /** Flushes if a flush is scheduled; returns false if none was. */
  flush(): boolean {
    if (!this.outputWaits) return false;
    this.outputWaits = false;
    this.connection.flush();
    return true;
  }

  /** Returns the frames received since the last call of this method, one line each. */
  received(): string[] {
    const bytes = Buffer.concat(this.sink.written.splice(0));
    const frames = new FrameReader().read(bytes);
    const complete = frames.reduce((sum, { payload }) => sum + 9 + payload.length, 0);
    if (complete < bytes.length) throw new Error('a frame is incomplete');
    return frames.map((one) => this.describe(one));
  }

  /** Returns the received frames as text. */
  receivedText(): string {
    return Buffer.concat(this.sink.written.splice(0)).toString('latin1');
  }

  private describe({ type, flags, streamId, payload }: RawFrame): string {
    const parts = [TYPE_NAMES[type] ?? `type ${type}`];
    if (streamId > 0) parts.push(String(streamId));
    switch (type) {
      case TYPE.DATA:
        parts.push(short(payload.toString('latin1')));
        break;
      case TYPE.HEADERS:
        if ((flags & END_HEADERS) !== 0) parts.push(this.describeBlock(payload));
        else parts.push(`${payload.length} bytes open`);
        break;
      case TYPE.CONTINUATION:
        parts.push(`${payload.length} bytes${(flags & END_HEADERS) !== 0 ? '' : ' open'}`);
        break;
      case TYPE.RST_STREAM:
        parts.push(CODE_NAMES[payload.readUInt32BE(0)] ?? '?');
        break;
      case TYPE.SETTINGS:
        for (let at = 0; at < payload.length; at += 6) {
          parts.push(`${payload.readUInt16BE(at)}=${payload.readUInt32BE(at + 2)}`);
        }
        break;
      case TYPE.PING:
        parts.push(payload.toString('latin1'));
        break;
      case TYPE.GOAWAY:
        parts.push(String(payload.readUInt32BE(0)), CODE_NAMES[payload.readUInt32BE(4)] ?? '?');
        break;
      case TYPE.WINDOW_UPDATE:
        parts.push(String(payload.readUInt32BE(0)));
        break;
      default:
    }
    if ((type === TYPE.SETTINGS || type === TYPE.PING) && (flags & ACK) !== 0) parts.push('ack');
    if ((type === TYPE.DATA || type === TYPE.HEADERS) && (flags & END_STREAM) !== 0) parts.push('end');
    return parts.join(' ');
  }

  private describeBlock(payload: Buffer): string {
    const list = this.decoder.decode(payload, 0, payload.length);
    if (list === undefined) throw new Error(`a header block does not decode: ${this.decoder.failure}`);
    const fields: string[] = [];
    for (let at = 0; at < list.fields.length; at += 2)
      fields.push(`${list.fields[at]}=${list.fields[at + 1]}`);
    return fields.join(' ');
  }
}

/** Defines a protocol test that runs with the peer's bytes whole, byte by byte, and split at random. */
export function protocolTest(
  name: string,
  run: (peer: H2Peer) => void,
  limits: Partial<H2Limits> = {},
): void {
  test.each(CHUNK_SPLITS.map((cut) => [cut.name, cut] as const))(`${name} (%s)`, (_name, cut) => {
    run(new H2Peer(limits, cut));
  });
}

/** Returns the transcript of {@link answer} with `text` as the body. */
export function answerLines(streamId: number, text: string): string[] {
  return [
    `HEADERS ${streamId} :status=200 content-type=application/grpc`,
    `DATA ${streamId} ${short(text)}`,
    `HEADERS ${streamId} grpc-status=0 end`,
  ];
}

/** Sends a complete response. */
export function answer(stream: ServerStream, body = 'ok'): void {
  stream.sendResponse(OK_HEADERS, bytesBody(Buffer.from(body)), OK_TRAILERS);
}
