import { ENTRY_OVERHEAD } from './dynamic-table.js';
import type { HeaderField } from './header-field.js';
import { STATIC_TABLE_LENGTH } from './static-table.js';

/**
 * Maximum size that we use of the peer's table, which is also the initial size of every table (RFC 9113 section 6.5.2).
 */
const MAX_TABLE_BYTES = 4096;
/** Maximum number of octets of an integer that we write, enough for any string length. */
const MAX_INTEGER_OCTETS = 6;
const MAX_SIZE_UPDATES = 2;

// The first octet of a field (RFC 7541 section 6): its representation, and the mask of its integer.
const INDEXED = 0x80;
const INDEXED_MASK = 0x7f;
const INCREMENTAL = 0x40;
const INCREMENTAL_MASK = 0x3f;
const SIZE_UPDATE = 0x20;
const SIZE_UPDATE_MASK = 0x1f;
const WITHOUT_INDEXING = 0x00;
const WITHOUT_INDEXING_MASK = 0x0f;
const PLAIN_STRING = 0x00;
const STRING_LENGTH_MASK = 0x7f;

/** The encoded fields of a list. */
interface Block {
  readonly fields: readonly HeaderField[];
  readonly bytes: Uint8Array;
}

/** Maximum number of {@link Block}s of a connection: for calls that succeed, headers by content type, and trailers. */
const MAX_BLOCKS = 3;

/**
 * Encodes the header blocks of one connection (RFC 7541). Blocks must be sent in the order in which they are encoded. A
 * field with {@link HeaderField.indexed} is added to the dynamic table while there is space. Entries are evicted only
 * if the peer reduces its table. Strings are not Huffman-coded: the code would save a few bytes of rare strings and
 * cost time for each string.
 */
export class HpackEncoder {
  /**
   * The dynamic table, oldest entry first. The same few objects are sent repeatedly, so they are found by identity.
   */
  #entries: HeaderField[] = [];
  #size = 0;
  #maxSize = MAX_TABLE_BYTES;
  /** Smallest size of the table since the last block, if {@link #sizeChanged}. */
  #smallestMaxSize = MAX_TABLE_BYTES;
  #sizeChanged = false;
  /** The blocks of lists whose fields are all in a table, which are the same until the table changes. */
  readonly #blocks: Block[] = [];

  /**
   * Sets the peer's SETTINGS_HEADER_TABLE_SIZE in bytes; the default is 4096. The next block begins with the size
   * updates that the change requires (RFC 7541 section 4.2).
   */
  setPeerTableBytes(bytes: number): void {
    const maxSize = Math.min(bytes, MAX_TABLE_BYTES);
    if (maxSize === this.#maxSize) return;
    this.#smallestMaxSize = this.#sizeChanged ? Math.min(this.#smallestMaxSize, maxSize) : maxSize;
    this.#maxSize = maxSize;
    this.#sizeChanged = true;
    this.#blocks.length = 0;
    while (this.#size > maxSize) this.#size -= sizeOf(this.#entries.shift() as HeaderField);
  }

  /** Returns an upper bound for the number of bytes that {@link encode} writes for `fields`, including size updates. */
  maxLength(fields: readonly HeaderField[]): number {
    const block = this.blockOf(fields);
    if (block !== undefined) return block.length;
    let length = MAX_SIZE_UPDATES * MAX_INTEGER_OCTETS;
    for (let i = 0; i < fields.length; i++) {
      const field = fields[i] as HeaderField;
      length += field.name.length + field.value.length + 3 * MAX_INTEGER_OCTETS;
    }
    return length;
  }

  /**
   * Writes the block of `fields` to `out` at `at`, where {@link maxLength} bytes must be available. Returns the offset
   * after the block.
   */
  encode(fields: readonly HeaderField[], out: Uint8Array, at: number): number {
    const block = this.blockOf(fields);
    if (block !== undefined) {
      for (let i = 0; i < block.length; i++) out[at + i] = block[i] as number;
      return at + block.length;
    }
    const start = this.#sizeChanged ? this.#writeSizeUpdates(out, at) : at;
    let end = start;
    const size = this.#size;
    for (let i = 0; i < fields.length; i++) {
      const field = fields[i] as HeaderField;
      if (field.staticIndex > 0) out[end++] = INDEXED | field.staticIndex;
      else if (field.indexed) end = this.#writeIndexed(field, out, end);
      else end = writeLiteral(field, WITHOUT_INDEXING, WITHOUT_INDEXING_MASK, out, end);
    }
    if (size !== this.#size) this.#blocks.length = 0;
    else if (end > start && end - start === fields.length && this.#blocks.length < MAX_BLOCKS) {
      // Each field takes one octet, so all of them are in a table.
      this.#blocks.push({ fields, bytes: new Uint8Array(out.subarray(start, end)) });
    }
    return end;
  }

  /**
   * Returns what {@link encode} would write for `fields`, if it was called with the same list before and the encoded
   * fields are still the same.
   */
  blockOf(fields: readonly HeaderField[]): Uint8Array | undefined {
    const blocks = this.#blocks;
    for (let i = 0; i < blocks.length; i++) {
      const block = blocks[i] as Block;
      if (block.fields === fields) return block.bytes;
    }
    return undefined;
  }

  #writeIndexed(field: HeaderField, out: Uint8Array, at: number): number {
    const count = this.#entries.length;
    for (let position = 0; position < count; position++) {
      if (this.#entries[position] !== field) continue;
      return writeInteger(INDEXED, INDEXED_MASK, STATIC_TABLE_LENGTH + count - position, out, at);
    }
    const size = sizeOf(field);
    if (this.#size + size > this.#maxSize) {
      return writeLiteral(field, WITHOUT_INDEXING, WITHOUT_INDEXING_MASK, out, at);
    }
    this.#entries.push(field);
    this.#size += size;
    return writeLiteral(field, INCREMENTAL, INCREMENTAL_MASK, out, at);
  }

  #writeSizeUpdates(out: Uint8Array, at: number): number {
    this.#sizeChanged = false;
    let end = at;
    if (this.#smallestMaxSize < this.#maxSize) {
      end = writeInteger(SIZE_UPDATE, SIZE_UPDATE_MASK, this.#smallestMaxSize, out, end);
    }
    return writeInteger(SIZE_UPDATE, SIZE_UPDATE_MASK, this.#maxSize, out, end);
  }
}

/** RFC 7541 section 4.1. */
function sizeOf(field: HeaderField): number {
  return field.name.length + field.value.length + ENTRY_OVERHEAD;
}

/** Writes a literal field (RFC 7541 section 6.2). */
function writeLiteral(field: HeaderField, form: number, mask: number, out: Uint8Array, at: number): number {
  let end = writeInteger(form, mask, field.staticNameIndex, out, at);
  if (field.staticNameIndex === 0) end = writeString(field.name, out, end);
  return writeString(field.value, out, end);
}

/** Writes a string literal without Huffman coding (RFC 7541 section 5.2). */
function writeString(text: string, out: Uint8Array, at: number): number {
  let end = writeInteger(PLAIN_STRING, STRING_LENGTH_MASK, text.length, out, at);
  for (let i = 0; i < text.length; i++) out[end++] = text.charCodeAt(i);
  return end;
}

/** Writes an integer (RFC 7541 section 5.1): `value` in the bits of `mask`, followed by as many octets as it needs. */
function writeInteger(form: number, mask: number, value: number, out: Uint8Array, at: number): number {
  let end = at;
  if (value < mask) {
    out[end++] = form | value;
    return end;
  }
  out[end++] = form | mask;
  let rest = value - mask;
  while (rest >= 0x80) {
    out[end++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  out[end++] = rest;
  return end;
}
