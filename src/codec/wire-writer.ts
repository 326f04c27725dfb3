/** Bytes that are taken from the system at once. */
const SLAB_BYTES = 65_536;
/** A UTF-16 unit takes at most three bytes in UTF-8. */
export const MAX_BYTES_PER_UNIT = 3;
/** Most texts whose bytes are kept; one of 128 bytes or more never is. */
const MAX_CACHED_TEXTS = 4096;
const TWO_POW_14 = 0x4000;
const TWO_POW_21 = 0x20_0000;
const TWO_POW_28 = 0x1000_0000;

/**
 * Memory that is not cleared first. A plain Uint8Array: V8 looks the methods of a Buffer up anew at each call, which
 * costs 0.2 µs per answer.
 */
function newSlab(bytes: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.allocUnsafeSlow(bytes).buffer);
}

/**
 * Writes protobuf messages from their end to their beginning: when a length is to be written, what it measures is there
 * already, so nothing is measured beforehand. Messages lie one before the other in a slab that is never written twice:
 * what {@link finish} returned stays as it is for as long as somebody holds it.
 */
export class WireWriter {
  #slab = newSlab(SLAB_BYTES);
  /** The memory of the slab: asking the slab for it costs more than all else in {@link finish}. */
  #memory = this.#slab.buffer;
  /** Length and bytes of texts, as a field holds them. */
  readonly #cachedTexts = new Map<string, Uint8Array>();
  /** Everything from here to `#end` is written. */
  #at = SLAB_BYTES;
  #end = SLAB_BYTES;

  /** Begins a message of at most `maxBytes`: nothing after it checks for room. */
  begin(maxBytes: number): void {
    if (maxBytes > this.#at) {
      this.#slab = newSlab(Math.max(SLAB_BYTES, maxBytes));
      this.#memory = this.#slab.buffer;
      this.#at = this.#slab.length;
    }
    this.#end = this.#at;
  }

  /** The message. */
  finish(): Uint8Array {
    // The slab begins where its memory does.
    return new Uint8Array(this.#memory, this.#at, this.#end - this.#at);
  }

  /** Where the message now begins; give it to {@link lengthSince} to measure what is written from here on. */
  get mark(): number {
    return this.#at;
  }

  /** Writes, in front of it, the number of bytes written since `mark`, and then `tag`. */
  lengthSince(mark: number, tag: number): void {
    this.varint(mark - this.#at);
    this.byte(tag);
  }

  byte(value: number): void {
    this.#slab[--this.#at] = value;
  }

  /** A whole number from 0 to 2^53-1. */
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

  /** A number field, left out when it is 0, the default. */
  numberField(tag: number, value: number): void {
    if (value === 0) return;
    this.varint(value);
    this.byte(tag);
  }

  /** A string field, left out when it is empty, the default. Half a surrogate pair becomes U+FFFD. */
  textField(tag: number, text: string): void {
    const length = text.length;
    if (length === 0) return;
    const slab = this.#slab;
    let at = this.#at;
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

  /** A string field, written even when it is empty. */
  presentTextField(tag: number, text: string): void {
    if (text.length > 0) {
      this.textField(tag, text);
      return;
    }
    this.byte(0);
    this.byte(tag);
  }

  /** A double, without a tag. */
  double(value: number): void {
    this.#at -= 8;
    new DataView(this.#memory, this.#at, 8).setFloat64(0, value, true);
  }

  /**
   * {@link textField} for texts that come again and again: names that the policy or this program gives, never callers.
   */
  cachedTextField(tag: number, text: string): void {
    const known = this.#cachedTexts.get(text);
    if (known === undefined) {
      this.#learn(text);
      this.textField(tag, text);
      return;
    }
    // Length and bytes; a tag is one byte.
    this.#at -= known.length;
    this.#slab.set(known, this.#at);
    this.byte(tag);
  }

  #learn(text: string): void {
    const bytes = Buffer.from(text);
    if (bytes.length === 0 || bytes.length >= 0x80 || this.#cachedTexts.size >= MAX_CACHED_TEXTS) return;
    this.#cachedTexts.set(text, Uint8Array.of(bytes.length, ...bytes));
  }

  /** A bytes or message field, written even when empty. */
  bytesField(tag: number, bytes: Uint8Array): void {
    this.#at -= bytes.length;
    this.#slab.set(bytes, this.#at);
    this.varint(bytes.length);
    this.byte(tag);
  }

  /** Numbers from 2^14 on. The lowest 28 bits and the rest are integers of 32 bits each, which divide fast. */
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
