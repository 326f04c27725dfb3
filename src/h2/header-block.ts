import { ERROR_CODE } from './error-code.js';
import { ConnectionFailure } from './failure.js';
import type { H2Limits } from './limits.js';

/** A header block has more bytes than H2Limits.maxHeaderBlockBytes. */
export const HEADER_BLOCK_TOO_LONG = new ConnectionFailure(
  ERROR_CODE.ENHANCE_YOUR_CALM,
  'the peer sent a header block that is longer than allowed',
);
const TOO_MANY = new ConnectionFailure(
  ERROR_CODE.ENHANCE_YOUR_CALM,
  'the peer sent a header block in more CONTINUATION frames than allowed',
);

/**
 * Puts together a header block that does not end with its HEADERS frame (RFC 9113 section 4.3): what CONTINUATION
 * frames bring, bounded in bytes and in frames.
 */
export class HeaderBlock {
  endStream = false;
  selfDependent = false;
  /** The block's fragments so far, in `bytes[0, length)`. */
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

  /** A CONTINUATION frame came. */
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

  /** The block was read; its bytes are not kept. */
  release(): void {
    this.bytes = Buffer.alloc(0);
    this.length = 0;
  }
}
