/** One decoded header block (RFC 7541), pseudo-header fields included, in order. Immutable once handed out. */
export interface HeaderList {
  /** Name and value by turns; one character per byte (latin1). */
  readonly fields: readonly string[];
  /** Size as SETTINGS_MAX_HEADER_LIST_SIZE counts it: name + value + 32 per field (RFC 9113 section 6.5.2). */
  readonly size: number;
  /** The list was larger than the limit: `fields` is cut, the dynamic table is in step all the same. */
  readonly tooLarge: boolean;
  /**
   * For the user of the decoder to keep what follows from the fields. A block of the same bytes on an unmoved dynamic
   * table gives the same object again.
   */
  derived: unknown;
}
