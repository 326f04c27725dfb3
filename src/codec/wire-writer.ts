/** Maximum length in UTF-8 of one UTF-16 unit. */
export const MAX_BYTES_PER_UNIT = 3;
/** Maximum number of cached strings. Strings of 128 bytes or more are not cached. */
const MAX_CACHED_TEXTS = 4096;
/** Minimum length of strings that are encoded by a TextEncoder, which is faster for them. */
const LONG_TEXT_UNITS = 64;
const encoder = new TextEncoder();
const ZERO = 0x30;
const MAX_INT32 = 0x7fff_ffff;
const TWO_POW_14 = 0x4000;
const TWO_POW_21 = 0x20_0000;
const TWO_POW_28 = 0x1000_0000;

/**
 * Writes protobuf messages from end to start. When a length is written, the data that it measures is already written,
 * so nothing has to be measured in advance.
 */
export class WireWriter {
  #bytes: Uint8Array = new Uint8Array(0);
  /** Cached strings with their length prefix, as encoded in a field. */
  readonly #cachedTexts = new Map<string, Uint8Array>();
  /** Everything from here to the end of the message is written. */
  #at = 0;

  /** Begins a message that ends before `bytes[end]`. Later writes do not check for available space. */
  begin(bytes: Uint8Array, end: number): void {
    this.#bytes = bytes;
    this.#at = end;
  }

  /** The current start of the message. Pass it to {@link lengthSince} to measure what is written from here on. */
  get position(): number {
    return this.#at;
  }

  /** Writes the number of bytes written since `mark`, and then `tag`. */
  lengthSince(mark: number, tag: number): void {
    this.varint(mark - this.#at);
    this.byte(tag);
  }

  byte(value: number): void {
    this.#bytes[--this.#at] = value;
  }

  /** Writes an integer from 0 to 2^53-1. */
  varint(value: number): void {
    if (value < 0x80) {
      this.#bytes[--this.#at] = value;
    } else if (value < TWO_POW_14) {
      this.#bytes[--this.#at] = value >>> 7;
      this.#bytes[--this.#at] = (value & 0x7f) | 0x80;
    } else {
      this.#longVarint(value);
    }
  }

  /** Writes a number field, unless it is 0, the default. */
  numberField(tag: number, value: number): void {
    if (value === 0) return;
    this.varint(value);
    this.byte(tag);
  }

  /** Writes a string field, unless it is empty, the default. Lone surrogates become U+FFFD. */
  textField(tag: number, text: string): void {
    const length = text.length;
    if (length === 0) return;
    const bytes = this.#bytes;
    let at = this.#at;
    if (length >= LONG_TEXT_UNITS) {
      // Exactly ASCII text takes one byte for each unit.
      if (encoder.encodeInto(text, bytes.subarray(at - length, at)).read !== length)
        this.bytesField(tag, Buffer.from(text));
      else {
        this.#at -= length;
        this.varint(length);
        this.byte(tag);
      }
      return;
    }
    for (let index = length - 1; index >= 0; index--) {
      const unit = text.charCodeAt(index);
      if (unit >= 0x80) {
        this.bytesField(tag, Buffer.from(text));
        return;
      }
      bytes[--at] = unit;
    }
    this.#at = at;
    this.varint(length);
    this.byte(tag);
  }

  /** Writes a string field even if it is empty. */
  presentTextField(tag: number, text: string): void {
    if (text.length > 0) {
      this.textField(tag, text);
      return;
    }
    this.byte(0);
    this.byte(tag);
  }

  /** Writes a double without a tag. */
  double(value: number): void {
    this.#at -= 8;
    const { buffer, byteOffset } = this.#bytes;
    new DataView(buffer, byteOffset + this.#at, 8).setFloat64(0, value, true);
  }

  /** Same as {@link textField}, for strings that recur: names from the policy or this program, never from callers. */
  cachedTextField(tag: number, text: string): void {
    if (text.length === 0) return;
    const known = this.#cachedTexts.get(text);
    if (known === undefined) {
      this.#learn(text);
      this.textField(tag, text);
      return;
    }
    this.encoded(known);
    this.byte(tag);
  }

  /** Writes what was encoded before. */
  encoded(known: Uint8Array): void {
    this.#at -= known.length;
    this.#bytes.set(known, this.#at);
  }

  copySince(mark: number): Uint8Array {
    return new Uint8Array(this.#bytes.subarray(this.#at, mark));
  }

  /** Writes a string field with the decimal digits of an integer from 0 to 2^53-1. */
  digitsField(tag: number, value: number): void {
    const bytes = this.#bytes;
    const end = this.#at;
    let at = end;
    let rest = value;
    // The remainder of a 32-bit integer takes a fraction of the time of a larger one's.
    while (rest > MAX_INT32) {
      const tens = Math.floor(rest / 10);
      bytes[--at] = ZERO + (rest - 10 * tens);
      rest = tens;
    }
    let small = rest | 0;
    do {
      const tens = (small / 10) | 0;
      bytes[--at] = ZERO + (small - 10 * tens);
      small = tens;
    } while (small > 0);
    this.#at = at;
    this.varint(end - at);
    this.byte(tag);
  }

  #learn(text: string): void {
    const bytes = Buffer.from(text);
    if (bytes.length >= 0x80 || this.#cachedTexts.size >= MAX_CACHED_TEXTS) return;
    this.#cachedTexts.set(text, Uint8Array.of(bytes.length, ...bytes));
  }

  /** Writes a bytes or message field even if it is empty. */
  bytesField(tag: number, bytes: Uint8Array): void {
    this.#at -= bytes.length;
    this.#bytes.set(bytes, this.#at);
    this.varint(bytes.length);
    this.byte(tag);
  }

  /** Writes numbers from 2^14 on. The low 28 bits and the rest are 32-bit integers, which divide fast. */
  #longVarint(value: number): void {
    const bytes = this.#bytes;
    const low = value & 0x0fff_ffff;
    if (value >= TWO_POW_28) {
      this.varint(Math.floor(value / TWO_POW_28));
      bytes[--this.#at] = (low >>> 21) | 0x80;
      bytes[--this.#at] = ((low >>> 14) & 0x7f) | 0x80;
    } else if (low >= TWO_POW_21) {
      bytes[--this.#at] = low >>> 21;
      bytes[--this.#at] = ((low >>> 14) & 0x7f) | 0x80;
    } else {
      bytes[--this.#at] = low >>> 14;
    }
    bytes[--this.#at] = ((low >>> 7) & 0x7f) | 0x80;
    bytes[--this.#at] = (low & 0x7f) | 0x80;
  }
}
