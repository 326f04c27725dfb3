/** One decoded header block (RFC 7541), including pseudo-header fields, in order. Immutable. */
export interface HeaderList {
  /** Alternating names and values, with one character for each byte (latin1). */
  readonly fields: readonly string[];
  /** Size as defined for SETTINGS_MAX_HEADER_LIST_SIZE: name + value + 32 for each field (RFC 9113 section 6.5.2). */
  readonly size: number;
  /** Whether the list exceeded the limit. `fields` is then truncated, but the dynamic table is up to date. */
  readonly tooLarge: boolean;
  /**
   * Cache for values that the user of the decoder derives from the fields. A block with the same bytes and an unchanged
   * dynamic table returns the same object.
   */
  derived: unknown;
}
