import { staticFieldIndex, staticNameIndex } from './static-table.js';

/** A response header field that is created once and sent often. The encoder finds it in its table by identity. */
export class HeaderField {
  /** Name in lowercase (RFC 9113 section 8.2.1). */
  readonly name: string;
  /** Value with one character for each byte. */
  readonly value: string;
  /**
   * Whether the field is added to the dynamic table, so that later blocks need one byte for it. For constant fields
   * only: content-type, `grpc-status: 0`. The static table already contains `:status 200`.
   */
  readonly indexed: boolean;
  /** Index of the name and value in the static table, or 0. */
  readonly staticIndex: number;
  /** Index of the name in the static table, or 0. */
  readonly staticNameIndex: number;

  constructor(name: string, value: string, indexed = false) {
    this.name = name;
    this.value = value;
    this.indexed = indexed;
    this.staticIndex = staticFieldIndex(name, value);
    this.staticNameIndex = staticNameIndex(name);
  }
}

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
