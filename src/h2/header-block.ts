import { ERROR_CODE } from './error-code.js';
import { ConnectionFailure } from './failure.js';
import type { H2Limits } from './limits.js';

/** The header block exceeds H2Limits.maxHeaderBlockBytes. */
export const HEADER_BLOCK_TOO_LONG = new ConnectionFailure(
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
export class HeaderBlock {
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
