import type { ErrorCode } from './error-code.js';

/** A breach that ends the connection (RFC 9113 section 5.4.1). A return value, never thrown. */
export class ConnectionFailure {
  readonly code: ErrorCode;
  /** For the log and for GOAWAY, a clause in words: "the peer …", "a PING frame …". */
  readonly text: string;

  constructor(code: ErrorCode, text: string) {
    this.code = code;
    this.text = text;
  }
}

/**
 * A breach that ends one stream (RFC 9113 section 5.4.2): the one the frame at hand names. A return value, never
 * thrown.
 */
export class StreamFailure {
  readonly code: ErrorCode;
  /** A clause in words, for the log when the connection ends because of it. */
  readonly text: string;

  constructor(code: ErrorCode, text: string) {
    this.code = code;
    this.text = text;
  }
}

/** What taking a frame gives; undefined: all is well. */
export type Failure = ConnectionFailure | StreamFailure | undefined;
