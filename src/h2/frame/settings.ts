import { ConnectionFailure, ERROR_CODE } from '../failure.js';
import { MAX_WINDOW_BYTES } from '../streams/stream.js';
import { INITIAL_WINDOW_BYTES, MAX_MAX_FRAME_BYTES, MIN_MAX_FRAME_BYTES, readUint32 } from './frame-type.js';

/** Identifiers of settings (RFC 9113 section 6.5.2). */
export const SETTING = {
  HEADER_TABLE_SIZE: 0x1,
  ENABLE_PUSH: 0x2,
  MAX_CONCURRENT_STREAMS: 0x3,
  INITIAL_WINDOW_SIZE: 0x4,
  MAX_FRAME_SIZE: 0x5,
  MAX_HEADER_LIST_SIZE: 0x6,
} as const;

/** Bytes of one setting: a 16-bit identifier and a 32-bit value. */
const SETTING_BYTES = 6;

const PARTIAL = new ConnectionFailure(
  ERROR_CODE.FRAME_SIZE_ERROR,
  'the length of a SETTINGS frame is not a multiple of 6 bytes',
);
const BAD_PUSH = new ConnectionFailure(ERROR_CODE.PROTOCOL_ERROR, 'SETTINGS_ENABLE_PUSH is neither 0 nor 1');
const BAD_WINDOW = new ConnectionFailure(
  ERROR_CODE.FLOW_CONTROL_ERROR,
  'SETTINGS_INITIAL_WINDOW_SIZE is above 2^31-1',
);
const BAD_FRAME_SIZE = new ConnectionFailure(
  ERROR_CODE.PROTOCOL_ERROR,
  'SETTINGS_MAX_FRAME_SIZE is not between 16384 and 16777215',
);

/** The peer's settings that apply to a server without push, with the defaults of RFC 9113 section 6.5.2. */
export class PeerSettings {
  headerTableBytes = 4096;
  /** Lowest value of {@link headerTableBytes} in the last frame. */
  minHeaderTableBytes = 4096;
  initialWindowBytes = INITIAL_WINDOW_BYTES;
  maxFrameBytes = MIN_MAX_FRAME_BYTES;

  /**
   * Reads the payload `bytes[start, end)` of a SETTINGS frame. If a setting occurs twice, the later value applies (RFC
   * 9113 section 6.5.3: values are processed in order). An intermediate value matters only for a smaller header table,
   * because it evicts entries. Unknown settings are ignored.
   */
  read(bytes: Uint8Array, start: number, end: number): ConnectionFailure | undefined {
    if ((end - start) % SETTING_BYTES !== 0) return PARTIAL;
    this.minHeaderTableBytes = this.headerTableBytes;
    for (let at = start; at < end; at += SETTING_BYTES) {
      const identifier = ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
      const value = readUint32(bytes, at + 2);
      switch (identifier) {
        case SETTING.HEADER_TABLE_SIZE:
          this.headerTableBytes = value;
          this.minHeaderTableBytes = Math.min(this.minHeaderTableBytes, value);
          break;
        case SETTING.ENABLE_PUSH:
          if (value > 1) return BAD_PUSH;
          break;
        case SETTING.INITIAL_WINDOW_SIZE:
          if (value > MAX_WINDOW_BYTES) return BAD_WINDOW;
          this.initialWindowBytes = value;
          break;
        case SETTING.MAX_FRAME_SIZE:
          if (value < MIN_MAX_FRAME_BYTES || value > MAX_MAX_FRAME_BYTES) return BAD_FRAME_SIZE;
          this.maxFrameBytes = value;
          break;
        default:
      }
    }
    return undefined;
  }
}
