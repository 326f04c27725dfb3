import { ConnectionFailure, ERROR_CODE, type Failure } from './failure.js';
import { FLAG, headersPrefixLength, paddingLength, readUint31 } from './frames.js';
import { HpackDecoder } from './hpack/decoder.js';
import type { H2Limits } from './limits.js';
import type { Streams } from './streams/streams.js';

const { PROTOCOL_ERROR, FRAME_SIZE_ERROR, COMPRESSION_ERROR } = ERROR_CODE;

const STREAM_0 = new ConnectionFailure(PROTOCOL_ERROR, 'the peer sent a stream frame on stream 0');
const EVEN_STREAM = new ConnectionFailure(PROTOCOL_ERROR, 'the peer opened a stream with an even identifier');
const LONE_CONTINUATION = new ConnectionFailure(
  PROTOCOL_ERROR,
  'the peer sent CONTINUATION without a header block',
);
const PADDING = new ConnectionFailure(PROTOCOL_ERROR, 'the peer sent a frame with more padding than payload');
const NO_PRIORITY = new ConnectionFailure(
  FRAME_SIZE_ERROR,
  'the peer sent a HEADERS frame that is shorter than its flags require',
);

/**
 * Handles DATA, HEADERS and CONTINUATION frames (RFC 9113 sections 6.1, 6.2, 6.10): removes padding and priority, and
 * assembles and decodes header blocks.
 */
export class RequestFrames {
  /** Id of the stream whose header block is incomplete, or 0. */
  openBlockId = 0;
  readonly #streams: Streams;
  readonly #decoder: HpackDecoder;
  readonly #block: HeaderBlock;
  readonly #maxHeaderBlockBytes: number;

  constructor(streams: Streams, limits: H2Limits) {
    this.#streams = streams;
    this.#decoder = new HpackDecoder({
      maxTableBytes: limits.headerTableBytes,
      maxListBytes: limits.maxHeaderListBytes,
    });
    this.#block = new HeaderBlock(limits);
    this.#maxHeaderBlockBytes = limits.maxHeaderBlockBytes;
  }

  /** Memory held for the incomplete header block, in bytes. */
  get heldBytes(): number {
    return this.#block.bytes.length;
  }

  /** Frees the header block when the connection ends. */
  release(): void {
    this.#block.release();
  }

  onData(flags: number, id: number, bytes: Buffer, start: number, end: number): Failure {
    if (id === 0) return STREAM_0;
    let bodyStart = start;
    let bodyEnd = end;
    if ((flags & FLAG.PADDED) !== 0) {
      const padding = paddingLength(bytes, start, end);
      if (padding < 0) return PADDING;
      bodyStart++;
      bodyEnd -= padding;
    }
    const endStream = (flags & FLAG.END_STREAM) !== 0;
    return this.#streams.onData(id, end - start, bytes, bodyStart, bodyEnd, endStream);
  }

  onHeaders(flags: number, id: number, bytes: Buffer, start: number, end: number): Failure {
    if (id === 0) return STREAM_0;
    if ((id & 1) === 0) return EVEN_STREAM;
    const endStream = (flags & FLAG.END_STREAM) !== 0;
    let blockStart = start;
    let blockEnd = end;
    let selfDependent = false;
    if ((flags & (FLAG.PADDED | FLAG.PRIORITY)) !== 0) {
      blockStart += headersPrefixLength(flags);
      if (blockStart > end) return NO_PRIORITY;
      if ((flags & FLAG.PADDED) !== 0) blockEnd -= bytes[start] as number;
      if (blockStart > blockEnd) return PADDING;
      if ((flags & FLAG.PRIORITY) !== 0) selfDependent = readUint31(bytes, blockStart - 5) === id;
    }
    if ((flags & FLAG.END_HEADERS) !== 0) {
      return this.#onHeaderBlock(id, bytes, blockStart, blockEnd, endStream, selfDependent);
    }
    this.openBlockId = id;
    this.#block.begin(endStream, selfDependent);
    return this.#block.append(bytes, blockStart, blockEnd);
  }

  /** The caller has checked that `id` equals {@link openBlockId} if the latter is not 0. */
  onContinuation(flags: number, id: number, bytes: Buffer, start: number, end: number): Failure {
    if (this.openBlockId === 0) return LONE_CONTINUATION;
    const block = this.#block;
    const problem = block.countContinuation() ?? block.append(bytes, start, end);
    if (problem !== undefined || (flags & FLAG.END_HEADERS) === 0) return problem;
    this.openBlockId = 0;
    const complete = block.bytes;
    const { length } = block;
    block.release();
    return this.#onHeaderBlock(id, complete, 0, length, block.endStream, block.selfDependent);
  }

  #onHeaderBlock(
    id: number,
    bytes: Buffer,
    start: number,
    end: number,
    endStream: boolean,
    selfDependent: boolean,
  ): Failure {
    if (end - start > this.#maxHeaderBlockBytes) return HEADER_BLOCK_TOO_LONG;
    // Every block must be decoded, even if the stream is refused, to keep both dynamic tables synchronized (RFC 9113
    // section 4.3).
    const list = this.#decoder.decode(bytes, start, end);
    if (list === undefined) {
      return new ConnectionFailure(
        COMPRESSION_ERROR,
        `the peer sent an invalid header block: ${this.#decoder.failure}`,
      );
    }
    return this.#streams.onHeaders(id, list, endStream, selfDependent);
  }
}

/** The header block exceeds H2Limits.maxHeaderBlockBytes. */
const HEADER_BLOCK_TOO_LONG = new ConnectionFailure(
  ERROR_CODE.ENHANCE_YOUR_CALM,
  'the peer sent a header block that is longer than allowed',
);
const TOO_MANY = new ConnectionFailure(
  ERROR_CODE.ENHANCE_YOUR_CALM,
  'the peer sent a header block in more CONTINUATION frames than allowed',
);

/**
 * Assembles a header block that continues in CONTINUATION frames after its HEADERS frame (RFC 9113 section 4.3). Limits
 * the bytes and the number of frames.
 */
class HeaderBlock {
  endStream = false;
  selfDependent = false;
  /** The fragments received so far, in `bytes[0, length)`. */
  bytes: Buffer = Buffer.alloc(0);
  length = 0;
  #continuations = 0;
  readonly #maxBytes: number;
  readonly #maxContinuations: number;

  constructor(limits: H2Limits) {
    this.#maxBytes = limits.maxHeaderBlockBytes;
    this.#maxContinuations = limits.maxContinuations;
  }

  begin(endStream: boolean, selfDependent: boolean): void {
    this.endStream = endStream;
    this.selfDependent = selfDependent;
    this.length = 0;
    this.#continuations = 0;
  }

  /** Counts a CONTINUATION frame. Returns a failure if there are too many. */
  countContinuation(): ConnectionFailure | undefined {
    this.#continuations++;
    return this.#continuations > this.#maxContinuations ? TOO_MANY : undefined;
  }

  append(bytes: Buffer, start: number, end: number): ConnectionFailure | undefined {
    const needed = this.length + end - start;
    if (needed > this.#maxBytes) return HEADER_BLOCK_TOO_LONG;
    if (needed > this.bytes.length) {
      const larger = Buffer.allocUnsafeSlow(2 * needed);
      this.bytes.copy(larger, 0, 0, this.length);
      this.bytes = larger;
    }
    bytes.copy(this.bytes, this.length, start, end);
    this.length = needed;
    return undefined;
  }

  /** Frees the bytes after the block was decoded. */
  release(): void {
    this.bytes = Buffer.alloc(0);
    this.length = 0;
  }
}
