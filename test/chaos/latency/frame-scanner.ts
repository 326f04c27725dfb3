import { FLAG, FRAME_HEADER_BYTES, FRAME_TYPE } from '../../../src/h2/frame/frame-type.js';

/** Scans one direction of an HTTP/2 connection for the ends of streams. Chunks may end anywhere. */
export class FrameScanner {
  private readonly header = Buffer.alloc(FRAME_HEADER_BYTES);
  private filled = 0;
  private skip: number;

  /** `prefaceBytes` is the number of bytes before the first frame. */
  constructor(prefaceBytes: number) {
    this.skip = prefaceBytes;
  }

  /** Calls `ended` with each stream that ends, as soon as the header of its last frame is complete. */
  scan(bytes: Uint8Array, ended: (stream: number) => void): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.skip > 0) {
        const skipped = Math.min(this.skip, bytes.length - at);
        this.skip -= skipped;
        at += skipped;
        continue;
      }
      while (this.filled < FRAME_HEADER_BYTES && at < bytes.length) {
        this.header[this.filled++] = bytes[at++] as number;
      }
      if (this.filled < FRAME_HEADER_BYTES) return;
      this.filled = 0;
      this.skip = this.header.readUIntBE(0, 3);
      const type = this.header[3] as number;
      const isLast = ((this.header[4] as number) & FLAG.END_STREAM) !== 0;
      if ((type === FRAME_TYPE.DATA || type === FRAME_TYPE.HEADERS) && isLast) {
        ended(this.header.readUInt32BE(5) & 0x7fff_ffff);
      }
    }
  }
}
