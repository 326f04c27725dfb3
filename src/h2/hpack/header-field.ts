import { staticFieldIndex, staticNameIndex } from './static-table.js';

/** A field of a response, made once and sent often: the encoder keeps what it knows about it by identity. */
export class HeaderField {
  /** Lower case, RFC 9113 section 8.2.1. */
  readonly name: string;
  /** One character per byte. */
  readonly value: string;
  /**
   * Whether it enters the dynamic table, so that later blocks name it in a byte. Only for constant fields:
   * content-type, `grpc-status: 0`. `:status 200` stands in the static table anyway.
   */
  readonly indexed: boolean;
  /** Index of name and value in the static table, 0 where they are not in it. */
  readonly staticIndex: number;
  /** Index of the name in the static table, 0 where it is not in it. */
  readonly staticNameIndex: number;

  constructor(name: string, value: string, indexed = false) {
    this.name = name;
    this.value = value;
    this.indexed = indexed;
    this.staticIndex = staticFieldIndex(name, value);
    this.staticNameIndex = staticNameIndex(name);
  }
}
