import { DecodeError } from '../messages.js';
import { WireReader } from '../wire-reader.js';

/** Fields of a message of health or reflection, unknown ones included; more is refused. */
export const MAX_SERVICE_FIELDS = 100;
/** Bytes of a name in it; a longer one, which no proto file has, is refused. */
export const MAX_SYMBOL_BYTES = 4096;

/** Reads messages of the services that are asked rarely, which are short. Throws {@link DecodeError} for others. */
export class ServiceReader {
  readonly #bytes: Buffer;
  readonly #reader = new WireReader('the message is malformed', MAX_SERVICE_FIELDS);
  readonly #end: number;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#end = bytes.length;
    this.#reader.reset(bytes);
  }

  /**
   * Hands over the tag of each field up to `end`. `field` reads what it knows and returns true; all else is skipped, as
   * of a later version.
   */
  forEachField(field: (tag: number, end: number) => boolean, end: number = this.#end): void {
    while (this.#reader.position < end) {
      const tag = this.#reader.tag(end);
      if (!field(tag, end)) this.#reader.skipUnknown(tag, 0, end);
    }
  }

  /** Where the message ends that the field at hand holds. */
  messageEnd(end: number): number {
    return this.#reader.lengthEnd(end);
  }

  /** A number of 32 bits. */
  int32(end: number): number {
    return this.#reader.varint(end) | 0;
  }

  /** A name. */
  text(end: number): string {
    const textEnd = this.#reader.lengthEnd(end);
    if (textEnd - this.#reader.position > MAX_SYMBOL_BYTES)
      throw new DecodeError('a name in the message is too long');
    const text = this.#bytes.toString('utf8', this.#reader.position, textEnd);
    this.#reader.position = textEnd;
    return text;
  }
}
