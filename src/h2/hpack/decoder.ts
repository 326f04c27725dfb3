import { DynamicTable, ENTRY_OVERHEAD } from './dynamic-table.js';
import type { HeaderList } from './header-field.js';
import { decodeHuffman, maxDecodedLength } from './huffman.js';
import { STATIC_NAMES, STATIC_TABLE_LENGTH, STATIC_VALUES } from './static-table.js';

/** Initial table size of every decoder (RFC 9113 section 6.5.2). */
const DEFAULT_TABLE_BYTES = 4096;
/**
 * Maximum number of octets of an integer after its prefix. Four octets reach 2^28, which exceeds any string or table
 * here. RFC 7541 section 5.1 requires a limit.
 */
const MAX_INTEGER_OCTETS = 4;

// The first octet of a field (RFC 7541 section 6): its representation, and the mask of its integer.
const INDEXED = 0x80;
const INDEXED_MASK = 0x7f;
const INCREMENTAL = 0x40;
const INCREMENTAL_MASK = 0x3f;
const SIZE_UPDATE = 0x20;
const SIZE_UPDATE_MASK = 0x1f;
const NEVER_INDEXED = 0x10;
const LITERAL_MASK = 0x0f;
const HUFFMAN = 0x80;
const STRING_LENGTH_MASK = 0x7f;

/**
 * Decoded Huffman strings of the current field. All decoders share it, because its contents are used only while one
 * field is decoded.
 */
let scratch = Buffer.allocUnsafeSlow(4096);

/**
 * The function that `toString('latin1')` of a Buffer calls. It accepts any Uint8Array, and calling it directly skips
 * checks.
 */
const latin1Slice = (
  Buffer.prototype as unknown as { latin1Slice(this: Uint8Array, start: number, end: number): string }
).latin1Slice;

class DecodedHeaderList implements HeaderList {
  readonly fields: readonly string[];
  readonly size: number;
  readonly tooLarge: boolean;
  derived: unknown = undefined;

  constructor(fields: readonly string[], size: number, tooLarge: boolean) {
    this.fields = fields;
    this.size = size;
    this.tooLarge = tooLarge;
  }
}

/** Number of cached strings. A power of two. */
const SLOTS = 64;
/** Maximum length of a cached string in bytes. A power of two. */
const MAX_BYTES = 64;

/**
 * Caches the text of literal strings by their encoded bytes, because comparing bytes is cheaper than decoding. Clients
 * repeat a few strings in every block, such as `:path`, which most encoders never add to the dynamic table. A new
 * string replaces the one in its slot.
 */
export class LiteralCache {
  // String `slot` is stored in `bytes` from slot * MAX_BYTES on.
  readonly #bytes = new Uint8Array(SLOTS * MAX_BYTES);
  readonly #lengths = new Uint8Array(SLOTS);
  readonly #texts: string[] = new Array<string>(SLOTS).fill('');

  find(source: Uint8Array, start: number, end: number, huffman: boolean): string | undefined {
    const length = end - start;
    if (length > MAX_BYTES || length === 0) return undefined;
    const slot = slotOf(source, start, length);
    if (this.#lengths[slot] !== (huffman ? length | HUFFMAN : length)) return undefined;
    const kept = this.#bytes;
    const base = slot * MAX_BYTES;
    for (let i = 0; i < length; i++) if (kept[base + i] !== source[start + i]) return undefined;
    return this.#texts[slot];
  }

  keep(source: Uint8Array, start: number, end: number, huffman: boolean, text: string): void {
    const length = end - start;
    if (length > MAX_BYTES || length === 0) return;
    const slot = slotOf(source, start, length);
    const base = slot * MAX_BYTES;
    for (let i = 0; i < length; i++) this.#bytes[base + i] = source[start + i] as number;
    this.#lengths[slot] = huffman ? length | HUFFMAN : length;
    this.#texts[slot] = text;
  }
}

/** Hashes the length and three bytes, which is enough to separate the few strings of a client. */
function slotOf(source: Uint8Array, start: number, length: number): number {
  const first = source[start] as number;
  const middle = source[start + (length >> 1)] as number;
  const last = source[start + length - 1] as number;
  return (length ^ (first * 3) ^ (middle * 5) ^ (last * 11)) & (SLOTS - 1);
}

/** Number of cached blocks, so that a client may alternate between a few calls. A power of two. */
const BLOCK_SLOTS = 4;
/** Maximum length of a cached block in bytes. Once the table is stable, repeated blocks are much shorter. */
const MAX_BLOCK_BYTES = 256;

/** Caches the last few blocks of a connection that did not change the dynamic table, with their decoded lists. */
class RecentBlocks {
  // Allocated with the first block. Block `slot` is stored in `bytes` from slot * MAX_BLOCK_BYTES on.
  #bytes: Uint8Array | undefined = undefined;
  readonly #lengths: number[] = [0, 0, 0, 0];
  readonly #tableStates: number[] = [-1, -1, -1, -1];
  readonly #lists: (HeaderList | undefined)[] = [undefined, undefined, undefined, undefined];
  #lastUsed = 0;

  /**
   * Returns the decoded list of the same bytes with the same `tableState`, a number that identifies the state of the
   * dynamic table.
   */
  find(block: Uint8Array, start: number, end: number, tableState: number): HeaderList | undefined {
    const kept = this.#bytes;
    if (kept === undefined) return undefined;
    const length = end - start;
    for (let i = 0; i < BLOCK_SLOTS; i++) {
      const slot = (this.#lastUsed + i) & (BLOCK_SLOTS - 1);
      if (this.#lengths[slot] !== length || this.#tableStates[slot] !== tableState) continue;
      if (!equals(kept, slot * MAX_BLOCK_BYTES, block, start, length)) continue;
      this.#lastUsed = slot;
      return this.#lists[slot];
    }
    return undefined;
  }

  /** Stores a block in the slot that {@link find} checks last. */
  keep(block: Uint8Array, start: number, end: number, tableState: number, list: HeaderList): void {
    const length = end - start;
    if (length > MAX_BLOCK_BYTES) return;
    this.#bytes ??= new Uint8Array(BLOCK_SLOTS * MAX_BLOCK_BYTES);
    const slot = (this.#lastUsed + BLOCK_SLOTS - 1) & (BLOCK_SLOTS - 1);
    const kept = this.#bytes;
    const base = slot * MAX_BLOCK_BYTES;
    for (let i = 0; i < length; i++) kept[base + i] = block[start + i] as number;
    this.#lengths[slot] = length;
    this.#tableStates[slot] = tableState;
    this.#lists[slot] = list;
    this.#lastUsed = slot;
  }
}

// Compares from the end, because fields that differ between the blocks of one client (a path, a trace id) follow the
// common ones.
function equals(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number, length: number): boolean {
  for (let i = length - 1; i >= 0; i--) if (a[aStart + i] !== b[bStart + i]) return false;
  return true;
}

/** Literal strings, shared by all decoders, because connections of one proxy send the same strings. */
const literals = new LiteralCache();

/** A literal string: its text if it is cached, otherwise its position in the block or, decoded, in {@link scratch}. */
class StringLiteral {
  /** Length of the text in bytes. */
  length = 0;
  #text: string | undefined = undefined;
  #huffman = false;
  /** Position of the encoded string in the block. */
  #start = 0;
  #end = 0;
  #scratchStart = 0;

  setText(text: string): void {
    this.#text = text;
    this.length = text.length;
  }

  setPlain(start: number, end: number): void {
    this.#text = undefined;
    this.#huffman = false;
    this.#start = start;
    this.#end = end;
    this.length = end - start;
  }

  setDecoded(start: number, end: number, scratchStart: number, scratchEnd: number): void {
    this.#text = undefined;
    this.#huffman = true;
    this.#start = start;
    this.#end = end;
    this.#scratchStart = scratchStart;
    this.length = scratchEnd - scratchStart;
  }

  /** `keep` adds the text to {@link literals}. */
  toText(block: Uint8Array, keep: boolean): string {
    if (this.#text !== undefined) return this.#text;
    // Avoids a call for each of the thousands of empty strings that a malicious block may contain.
    if (this.length === 0) return '';
    const start = this.#start;
    const end = this.#end;
    const huffman = this.#huffman;
    const scratchStart = this.#scratchStart;
    const text = huffman
      ? latin1Slice.call(scratch, scratchStart, scratchStart + this.length)
      : latin1Slice.call(block, start, end);
    if (keep) literals.keep(block, start, end, huffman, text);
    return text;
  }
}

/**
 * Decodes the header blocks of one connection (RFC 7541). All blocks must be decoded in the order in which they were
 * sent, even those of refused streams, to keep the dynamic table synchronized.
 *
 * The cost is limited: time by the length of the block, memory by the table, the list and the block. Fields beyond
 * `maxListBytes` are counted, but their strings are not created.
 */
export class HpackDecoder {
  /** Why {@link decode} returned undefined. */
  failure = '';
  readonly #maxTableBytes: number;
  readonly #maxListBytes: number;
  readonly #table: DynamicTable;
  /** Number of changes to the table. Equal numbers mean an equal table. */
  #tableState = 0;
  readonly #recent = new RecentBlocks();

  // State of the block that is being decoded.
  #position = 0;
  #fields: string[] = [];
  #size = 0;
  #tooLarge = false;
  /**
   * Whether the current field is never indexed. Such a field may be a secret and is not stored in shared caches (RFC
   * 7541 section 7.1.3).
   */
  #sensitive = false;
  readonly #name = new StringLiteral();
  readonly #value = new StringLiteral();

  /**
   * `maxTableBytes`: our SETTINGS_HEADER_TABLE_SIZE. If it is below 4096, the peer may use 4096 until it has read our
   * SETTINGS and sends a size update. `maxListBytes`: our SETTINGS_MAX_HEADER_LIST_SIZE.
   */
  constructor(options: { readonly maxTableBytes: number; readonly maxListBytes: number }) {
    this.#maxTableBytes = options.maxTableBytes;
    this.#maxListBytes = options.maxListBytes;
    this.#table = new DynamicTable(DEFAULT_TABLE_BYTES, options.maxTableBytes);
  }

  /**
   * Decodes the block bytes[start, end). Never throws. Returns undefined if the block violates RFC 7541, which is a
   * COMPRESSION_ERROR: the connection must end (RFC 9113 section 4.3), and {@link failure} contains the reason. A block
   * with the same bytes as one of the last few, and the same table, returns the same list.
   */
  decode(bytes: Uint8Array, start: number, end: number): HeaderList | undefined {
    const tableState = this.#tableState;
    const known = this.#recent.find(bytes, start, end, tableState);
    if (known !== undefined) return known;

    const needed = maxDecodedLength(end - start);
    if (scratch.length < needed) scratch = Buffer.allocUnsafeSlow(needed);
    this.#position = start;
    this.#fields = [];
    this.#size = 0;
    this.#tooLarge = false;
    if (!this.#readBlock(bytes, start, end)) return undefined;
    const list = new DecodedHeaderList(this.#fields, this.#size, this.#tooLarge);
    if (this.#tableState === tableState) this.#recent.keep(bytes, start, end, tableState, list);
    return list;
  }

  #readBlock(bytes: Uint8Array, start: number, end: number): boolean {
    let lastUpdateEnd = start;
    while (this.#position < end) {
      const first = bytes[this.#position] as number;
      if (first >= INDEXED) {
        if (!this.#readIndexed(bytes, end)) return false;
      } else if (first >= INCREMENTAL) {
        this.#sensitive = false;
        if (!this.#readLiteral(bytes, end, INCREMENTAL_MASK, true)) return false;
      } else if (first < SIZE_UPDATE) {
        this.#sensitive = first >= NEVER_INDEXED;
        if (!this.#readLiteral(bytes, end, LITERAL_MASK, false)) return false;
      } else {
        if (this.#position !== lastUpdateEnd) return this.#fail('a table size update follows a field');
        if (!this.#readSizeUpdate(bytes, end)) return false;
        lastUpdateEnd = this.#position;
      }
    }
    return true;
  }

  /** Reads an indexed field (RFC 7541 section 6.1). */
  #readIndexed(bytes: Uint8Array, end: number): boolean {
    const index = this.#readInteger(bytes, end, INDEXED_MASK);
    if (index < 0) return false;
    if (index > 0 && index <= STATIC_TABLE_LENGTH) {
      this.#addField(STATIC_NAMES[index] as string, STATIC_VALUES[index] as string);
      return true;
    }
    const age = index - STATIC_TABLE_LENGTH - 1;
    if (index === 0 || age >= this.#table.length) return this.#failIndex(index);
    this.#addField(this.#table.nameAt(age), this.#table.valueAt(age));
    return true;
  }

  #addField(name: string, value: string): void {
    this.#size += name.length + value.length + ENTRY_OVERHEAD;
    if (this.#size > this.#maxListBytes) this.#tooLarge = true;
    else this.#fields.push(name, value);
  }

  /**
   * Reads a literal field (RFC 7541 sections 6.2.1 to 6.2.3). With `indexing`, the field is added to the dynamic table.
   */
  #readLiteral(bytes: Uint8Array, end: number, mask: number, indexing: boolean): boolean {
    const nameIndex = this.#readInteger(bytes, end, mask);
    if (nameIndex < 0) return false;
    let name: string | undefined;
    let nameLength: number;
    let scratchEnd = 0;
    if (nameIndex === 0) {
      scratchEnd = this.#readString(bytes, end, this.#name, 0);
      if (scratchEnd < 0) return false;
      nameLength = this.#name.length;
    } else {
      name = this.#nameOf(nameIndex);
      if (name === undefined) return this.#failIndex(nameIndex);
      nameLength = name.length;
    }
    if (this.#readString(bytes, end, this.#value, scratchEnd) < 0) return false;

    const fieldSize = nameLength + this.#value.length + ENTRY_OVERHEAD;
    this.#size += fieldSize;
    if (this.#size > this.#maxListBytes) this.#tooLarge = true;
    const adding = indexing && this.#table.fits(fieldSize);
    if (adding || !this.#tooLarge) {
      name ??= this.#name.toText(bytes, !this.#sensitive);
      const value = this.#value.toText(bytes, !this.#sensitive);
      if (!this.#tooLarge) this.#fields.push(name, value);
      if (adding) this.#table.add(name, value);
    }
    if (indexing) {
      this.#tableState += 1;
      if (!adding) this.#table.clear();
    }
    return true;
  }

  #nameOf(index: number): string | undefined {
    if (index <= STATIC_TABLE_LENGTH) return STATIC_NAMES[index];
    const age = index - STATIC_TABLE_LENGTH - 1;
    return age < this.#table.length ? this.#table.nameAt(age) : undefined;
  }

  /**
   * Reads a string literal (RFC 7541 section 5.2) into `literal`. A Huffman-coded string is decoded to {@link scratch}
   * at `scratchStart`. Returns the next free offset in scratch, or -1 on failure.
   */
  #readString(bytes: Uint8Array, end: number, literal: StringLiteral, scratchStart: number): number {
    if (this.#position >= end) return this.#failNumber('the block ends before a string');
    const huffman = (bytes[this.#position] as number) >= HUFFMAN;
    const length = this.#readInteger(bytes, end, STRING_LENGTH_MASK);
    if (length < 0) return -1;
    const start = this.#position;
    const stringEnd = start + length;
    if (stringEnd > end) return this.#failNumber('the block ends inside a string');
    this.#position = stringEnd;
    const known = this.#sensitive ? undefined : literals.find(bytes, start, stringEnd, huffman);
    if (known !== undefined) {
      literal.setText(known);
      return scratchStart;
    }
    if (!huffman) {
      literal.setPlain(start, stringEnd);
      return scratchStart;
    }
    const scratchEnd = decodeHuffman(bytes, start, stringEnd, scratch, scratchStart);
    if (scratchEnd < 0) return this.#failNumber('a string has an invalid Huffman code');
    literal.setDecoded(start, stringEnd, scratchStart, scratchEnd);
    return scratchEnd;
  }

  /** Reads a dynamic table size update (RFC 7541 section 6.3). */
  #readSizeUpdate(bytes: Uint8Array, end: number): boolean {
    const size = this.#readInteger(bytes, end, SIZE_UPDATE_MASK);
    if (size < 0) return false;
    if (size > this.#maxTableBytes) {
      return this.#fail(`a table size of ${size} bytes exceeds the limit of ${this.#maxTableBytes}`);
    }
    this.#table.resize(size);
    this.#tableState += 1;
    return true;
  }

  /**
   * Reads an integer whose prefix is the bits of `mask` in the current octet (RFC 7541 section 5.1). Returns -1 on
   * failure.
   */
  #readInteger(bytes: Uint8Array, end: number, mask: number): number {
    const prefix = (bytes[this.#position++] as number) & mask;
    return prefix < mask ? prefix : this.#readLongInteger(bytes, end, mask);
  }

  #readLongInteger(bytes: Uint8Array, end: number, mask: number): number {
    let value = mask;
    for (let octet = 0; octet < MAX_INTEGER_OCTETS; octet++) {
      if (this.#position >= end) return this.#failNumber('the block ends inside an integer');
      const byte = bytes[this.#position++] as number;
      value += (byte & 0x7f) << (7 * octet);
      if (byte < 0x80) return value;
    }
    return this.#failNumber('an integer is too large');
  }

  #fail(reason: string): false {
    this.failure = reason;
    return false;
  }

  #failNumber(reason: string): -1 {
    this.failure = reason;
    return -1;
  }

  #failIndex(index: number): false {
    return this.#fail(index === 0 ? 'index 0' : `index ${index} is not in the static or dynamic table`);
  }
}
