import type { ErrorCode } from './error-code.js';

/** A violation that ends the connection (RFC 9113 section 5.4.1). Returned as a value, never thrown. */
export class ConnectionFailure {
  readonly code: ErrorCode;
  /** Text for the log and for GOAWAY, such as "the peer …" or "a PING frame …". */
  readonly text: string;

  constructor(code: ErrorCode, text: string) {
    this.code = code;
    this.text = text;
  }
}

/**
 * A violation that ends the stream that the current frame names (RFC 9113 section 5.4.2). Returned as a value, never
 * thrown.
 */
export class StreamFailure {
  readonly code: ErrorCode;
  /** Text for the log if the connection ends because of this failure. */
  readonly text: string;

  constructor(code: ErrorCode, text: string) {
    this.code = code;
    this.text = text;
  }
}

/** The result of processing a frame. Undefined if there is no failure. */
export type Failure = ConnectionFailure | StreamFailure | undefined;
