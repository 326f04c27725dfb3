/** Bytes that are allocated at once. */
const SLAB_BYTES = 65_536;
/** Maximum length in UTF-8 of one UTF-16 unit. */
export const MAX_BYTES_PER_UNIT = 3;
/** Maximum number of cached strings. Strings of 128 bytes or more are not cached. */
const MAX_CACHED_TEXTS = 4096;
/** Minimum length of strings that are encoded by a TextEncoder, which is faster for them. */
const LONG_TEXT_UNITS = 64;
const encoder = new TextEncoder();
const TWO_POW_14 = 0x4000;
const TWO_POW_21 = 0x20_0000;
const TWO_POW_28 = 0x1000_0000;

/**
 * Allocates memory without clearing it. Returns a plain Uint8Array: V8 would look up the methods of a Buffer at each
 * call, which costs 0.2 µs for each response.
 */
function newSlab(bytes: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.allocUnsafeSlow(bytes).buffer);
}

/**
 * Writes protobuf messages from end to start. When a length is written, the data that it measures is already written,
 * so nothing has to be measured in advance. Messages are placed one before the other in a slab. No byte of a slab is
 * written twice, so the result of {@link finish} never changes.
 */
export class WireWriter {
  #slab = newSlab(SLAB_BYTES);
  /**
   * The memory of the slab. Reading this property of the slab would cost more than everything else in {@link finish}.
   */
  #memory = this.#slab.buffer;
  /** Cached strings with their length prefix, as encoded in a field. */
  readonly #cachedTexts = new Map<string, Uint8Array>();
  /** Everything from here to `#end` is written. */
  #at = SLAB_BYTES;
  #end = SLAB_BYTES;

  /** Begins a message of at most `maxBytes`. Later writes do not check for available space. */
  begin(maxBytes: number): void {
    if (maxBytes > this.#at) {
      this.#slab = newSlab(Math.max(SLAB_BYTES, maxBytes));
      this.#memory = this.#slab.buffer;
      this.#at = this.#slab.length;
    }
    this.#end = this.#at;
  }

  /** Returns the message. */
  finish(): Uint8Array {
    // The slab starts at offset 0 of its memory.
    return new Uint8Array(this.#memory, this.#at, this.#end - this.#at);
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
    this.#slab[--this.#at] = value;
  }

  /** Writes an integer from 0 to 2^53-1. */
  varint(value: number): void {
    if (value < 0x80) {
      this.#slab[--this.#at] = value;
    } else if (value < TWO_POW_14) {
      this.#slab[--this.#at] = value >>> 7;
      this.#slab[--this.#at] = (value & 0x7f) | 0x80;
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
    const slab = this.#slab;
    let at = this.#at;
    if (length >= LONG_TEXT_UNITS) {
      // Exactly ASCII text takes one byte for each unit.
      if (encoder.encodeInto(text, slab.subarray(at - length, at)).read !== length)
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
      slab[--at] = unit;
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
    new DataView(this.#memory, this.#at, 8).setFloat64(0, value, true);
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
    // Length and bytes. The tag is one byte.
    this.#at -= known.length;
    this.#slab.set(known, this.#at);
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
    this.#slab.set(bytes, this.#at);
    this.varint(bytes.length);
    this.byte(tag);
  }

  /** Writes numbers from 2^14 on. The low 28 bits and the rest are 32-bit integers, which divide fast. */
  #longVarint(value: number): void {
    const slab = this.#slab;
    const low = value & 0x0fff_ffff;
    if (value >= TWO_POW_28) {
      this.varint(Math.floor(value / TWO_POW_28));
      slab[--this.#at] = (low >>> 21) | 0x80;
      slab[--this.#at] = ((low >>> 14) & 0x7f) | 0x80;
    } else if (low >= TWO_POW_21) {
      slab[--this.#at] = low >>> 21;
      slab[--this.#at] = ((low >>> 14) & 0x7f) | 0x80;
    } else {
      slab[--this.#at] = low >>> 14;
    }
    slab[--this.#at] = ((low >>> 7) & 0x7f) | 0x80;
    slab[--this.#at] = (low & 0x7f) | 0x80;
  }
}
