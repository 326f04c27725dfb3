/** Limits of one connection. Each limit names the attack that it prevents and the consequence of exceeding it. */
export interface H2Limits {
  /**
   * Maximum number of open streams, SETTINGS_MAX_CONCURRENT_STREAMS. Further streams are refused with REFUSED_STREAM.
   */
  readonly maxConcurrentStreams: number;
  /**
   * SETTINGS_MAX_HEADER_LIST_SIZE in bytes. A larger header list results in status 431, and the request does not reach
   * a handler.
   */
  readonly maxHeaderListBytes: number;
  /**
   * Maximum bytes of one header block, in HEADERS and CONTINUATION frames together. A larger block ends the connection
   * (HPACK bomb, CONTINUATION flood, CVE-2024-27316).
   */
  readonly maxHeaderBlockBytes: number;
  /**
   * Maximum number of CONTINUATION frames in one header block. More frames end the connection (flood of empty
   * CONTINUATION frames).
   */
  readonly maxContinuations: number;
  /** SETTINGS_HEADER_TABLE_SIZE in bytes, for the peer's encoder. */
  readonly headerTableBytes: number;
  /** SETTINGS_MAX_FRAME_SIZE in bytes. */
  readonly maxFrameBytes: number;
  /** SETTINGS_INITIAL_WINDOW_SIZE in bytes: maximum of unconsumed body bytes of one stream. */
  readonly streamWindowBytes: number;
  /** Maximum of unconsumed body bytes of one connection. */
  readonly connectionWindowBytes: number;
  /**
   * Burst of streams that the peer resets before their response, or that it makes us reset. The budget refills by
   * {@link resetRefillPerSecond}. Exceeding it ends the connection with ENHANCE_YOUR_CALM (rapid reset,
   * CVE-2023-44487). Envoy resets one call for each response that it no longer waits for, so a hanging store must not
   * exhaust the budget.
   */
  readonly resetBurst: number;
  /** Number of resets allowed each second after the burst. */
  readonly resetRefillPerSecond: number;
  /**
   * Burst of frames that cause work without carrying a request: SETTINGS, PING, PRIORITY, unnecessary WINDOW_UPDATE,
   * empty DATA. Exceeding it ends the connection with ENHANCE_YOUR_CALM. Requests and our messages refill the budget,
   * so a busy peer may send more such frames.
   */
  readonly controlBurst: number;
  /** Number of such frames allowed each second after the burst. */
  readonly controlRefillPerSecond: number;
  /**
   * Number of reset streams that are remembered; the oldest are forgotten first. Frames that the peer sent on such a
   * stream before it saw the reset are ignored (RFC 9113 section 5.1). The number corresponds to the frames that can be
   * in transit.
   */
  readonly maxRememberedResets: number;
  /**
   * Maximum bytes of responses that wait for the socket or for flow control windows. Exceeding it closes the connection
   * (slow readers, zero windows).
   */
  readonly maxOutputBytes: number;
}

/** Default values of the limits that need not be configured. */
export const DEFAULT_LIMITS: Omit<H2Limits, 'maxConcurrentStreams' | 'maxHeaderListBytes'> = {
  maxHeaderBlockBytes: 65_536,
  maxContinuations: 32,
  headerTableBytes: 4096,
  maxFrameBytes: 16_384,
  streamWindowBytes: 65_535,
  connectionWindowBytes: 1_048_576,
  resetBurst: 10_000,
  resetRefillPerSecond: 10_000,
  controlBurst: 2000,
  controlRefillPerSecond: 1000,
  maxRememberedResets: 2048,
  maxOutputBytes: 4_194_304,
};
