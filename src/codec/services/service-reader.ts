import { DecodeError } from '../messages.js';
import { WireReader } from '../wire-reader.js';
import { WireWriter } from '../wire-writer.js';

/** Maximum length of a name in such a message, in bytes. No proto file contains longer names. */
export const MAX_SYMBOL_BYTES = 4096;

/** Reads the short messages of health and reflection. Throws {@link DecodeError} for longer ones. */
export class ServiceReader {
  readonly #bytes: Buffer;
  readonly #reader = new WireReader('the message is malformed');
  readonly #end: number;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#end = bytes.length;
    this.#reader.reset(bytes);
  }

  /**
   * Calls `field` with the tag of each field up to `end`. `field` reads the fields that it knows and returns true. All
   * other fields are skipped, because a later version may define them.
   */
  forEachField(field: (tag: number, end: number) => boolean, end: number = this.#end): void {
    while (this.#reader.position < end) {
      const tag = this.#reader.tag(end);
      if (!field(tag, end)) this.#reader.skipUnknown(tag, 0, end);
    }
  }

  /** Returns the end of the message in the current field. */
  messageEnd(end: number): number {
    return this.#reader.lengthEnd(end);
  }

  /** Reads a 32-bit integer. */
  int32(end: number): number {
    return this.#reader.varint(end) | 0;
  }

  /** Reads a name. */
  text(end: number): string {
    const textEnd = this.#reader.lengthEnd(end);
    if (textEnd - this.#reader.position > MAX_SYMBOL_BYTES)
      throw new DecodeError('a name in the message is too long');
    const text = this.#bytes.toString('utf8', this.#reader.position, textEnd);
    this.#reader.position = textEnd;
    return text;
  }
}

/** Maximum length of the tag and length prefix of a field, in bytes. */
export const FIELD_HEAD_BYTES = 11;

const writer = new WireWriter();

/**
 * Writes a message of health or reflection with at most `maxBytes`. `fill` writes the fields in reverse order, as
 * WireWriter requires.
 */
export function writeMessage(maxBytes: number, fill: (writer: WireWriter) => void): Buffer {
  const bytes = Buffer.allocUnsafe(maxBytes);
  writer.begin(bytes, maxBytes);
  fill(writer);
  // Copied, so that a small message that is kept does not keep the rest in memory.
  return Buffer.from(bytes.subarray(writer.position));
}
