/** HTTP/2 error codes (RFC 9113 section 7). */
export const ERROR_CODE = {
  NO_ERROR: 0x0,
  PROTOCOL_ERROR: 0x1,
  INTERNAL_ERROR: 0x2,
  FLOW_CONTROL_ERROR: 0x3,
  SETTINGS_TIMEOUT: 0x4,
  STREAM_CLOSED: 0x5,
  FRAME_SIZE_ERROR: 0x6,
  REFUSED_STREAM: 0x7,
  CANCEL: 0x8,
  COMPRESSION_ERROR: 0x9,
  CONNECT_ERROR: 0xa,
  ENHANCE_YOUR_CALM: 0xb,
  INADEQUATE_SECURITY: 0xc,
  HTTP_1_1_REQUIRED: 0xd,
} as const;
type ErrorCode = (typeof ERROR_CODE)[keyof typeof ERROR_CODE];

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
