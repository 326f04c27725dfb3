/** Bounds of one connection. Each names what it defends against; a breach has one documented consequence. */
export interface H2Limits {
  /** Streams open at a time, SETTINGS_MAX_CONCURRENT_STREAMS; one more is refused with REFUSED_STREAM. */
  readonly maxConcurrentStreams: number;
  /** SETTINGS_MAX_HEADER_LIST_SIZE in bytes; a larger list is answered with 431 and no handler sees it. */
  readonly maxHeaderListBytes: number;
  /**
   * Bytes of one header block, HEADERS and CONTINUATION frames together; more ends the connection (HPACK bomb,
   * CONTINUATION flood, CVE-2024-27316).
   */
  readonly maxHeaderBlockBytes: number;
  /** CONTINUATION frames of one header block; more ends the connection (empty CONTINUATION flood). */
  readonly maxContinuations: number;
  /** SETTINGS_HEADER_TABLE_SIZE in bytes, for the peer's encoder. */
  readonly headerTableBytes: number;
  /** SETTINGS_MAX_FRAME_SIZE in bytes. */
  readonly maxFrameBytes: number;
  /** SETTINGS_INITIAL_WINDOW_SIZE in bytes: unconsumed body bytes of one stream. */
  readonly streamWindowBytes: number;
  /** Unconsumed body bytes of one connection. */
  readonly connectionWindowBytes: number;
  /**
   * Streams that the peer resets before their answer, or makes us reset, refilled by {@link resetRefillPerSecond}: the
   * burst that is allowed; past it the connection ends with ENHANCE_YOUR_CALM (rapid reset, CVE-2023-44487). Envoy
   * resets one call for each answer it no longer waits for, so a hung store must not exhaust it.
   */
  readonly resetBurst: number;
  /** Resets allowed for each second after the burst. */
  readonly resetRefillPerSecond: number;
  /**
   * Frames that cost us work and bring no request: SETTINGS, PING, PRIORITY, WINDOW_UPDATE without need, empty DATA.
   * The burst allowed; past it the connection ends with ENHANCE_YOUR_CALM. Requests and messages of ours give some
   * back, so a busy peer may send more.
   */
  readonly controlBurst: number;
  /** Such frames allowed for each second after the burst. */
  readonly controlRefillPerSecond: number;
  /**
   * Streams remembered after a reset, oldest forgotten first: what the peer sent before it knew is ignored (RFC 9113
   * section 5.1). About what can be on the way at a time.
   */
  readonly maxRememberedResets: number;
  /**
   * Bytes of answers that may wait for the socket or for windows; past it the connection is closed (slow or zero-window
   * readers).
   */
  readonly maxOutputBytes: number;
}

/** Those that whoever opens a server need not choose. */
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
