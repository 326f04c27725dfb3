import { HpackDecoder } from '../../../src/h2/hpack/decoder.js';
import { END_STREAM, FrameReader, type RawFrame, TYPE } from '../../support/h2/h2-frames.js';

/** Events in a server's frames that an attacker needs. */
export interface H2ReaderEvents {
  settings(name: number, value: number): void;
  settingsEnd(): void;
  windowUpdate(streamId: number, increment: number): void;
  /** The answer of a stream is complete. `what` is its grpc-status, otherwise its HTTP status, or `reset`. */
  ended(streamId: number, what: string): void;
  ping(payload: Buffer): void;
  /** Received DATA, whose size the client must acknowledge with WINDOW_UPDATE. */
  data(streamId: number, payload: Buffer): void;
}

/** Reads the parts of a server's frames that an attacker needs. */
export class H2Reader {
  private readonly events: H2ReaderEvents;
  private readonly decoder = new HpackDecoder({ maxTableBytes: 4096, maxListBytes: 65_536 });
  private readonly reader = new FrameReader();

  constructor(events: H2ReaderEvents) {
    this.events = events;
  }

  read(chunk: Buffer): void {
    for (const one of this.reader.read(chunk)) this.frame(one);
  }

  private frame({ type, flags, streamId, payload }: RawFrame): void {
    const { events } = this;
    switch (type) {
      case TYPE.DATA:
        events.data(streamId, payload);
        if ((flags & END_STREAM) !== 0) events.ended(streamId, 'data');
        break;
      case TYPE.HEADERS: {
        const fields = this.decoder.decode(payload, 0, payload.length)?.fields ?? [];
        if ((flags & END_STREAM) !== 0) events.ended(streamId, statusOf(fields));
        break;
      }
      case TYPE.RST_STREAM:
        events.ended(streamId, 'reset');
        break;
      case TYPE.SETTINGS:
        if ((flags & 1) !== 0) break;
        for (let at = 0; at + 6 <= payload.length; at += 6) {
          events.settings(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
        }
        events.settingsEnd();
        break;
      case TYPE.PING:
        if ((flags & 1) === 0) events.ping(payload);
        break;
      case TYPE.WINDOW_UPDATE:
        events.windowUpdate(streamId, payload.readUInt32BE(0));
        break;
      default:
    }
  }
}

function statusOf(fields: readonly string[]): string {
  for (let at = 0; at < fields.length; at += 2) if (fields[at] === 'grpc-status') return `${fields[at + 1]}`;
  for (let at = 0; at < fields.length; at += 2) if (fields[at] === ':status') return `:${fields[at + 1]}`;
  return 'none';
}
