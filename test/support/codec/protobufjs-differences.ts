/** Type of a field in protobufjs. */
type Kind = 'text' | 'uint32' | 'uint64' | 'bool' | Message;
interface Message {
  readonly repeated: readonly number[];
  readonly fields: readonly (Kind | undefined)[];
}

const entry: Message = { repeated: [], fields: [undefined, 'text', 'text'] };
const override: Message = { repeated: [], fields: [undefined, 'uint32', 'uint32'] };
const wrapper: Message = { repeated: [], fields: [undefined, 'uint64'] };
const descriptor: Message = { repeated: [1], fields: [undefined, entry, override, wrapper, 'bool'] };
const request: Message = { repeated: [2], fields: [undefined, 'text', descriptor, 'uint32'] };

class Walker {
  found = false;
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  message(end: number, shape: Message): void {
    const seen = new Set<number>();
    while (this.#at < end) {
      const tag = this.#varint('uint32');
      const number = Math.floor(tag / 8);
      const kind = shape.fields[number];
      if (kind === undefined) this.#skip(tag);
      else if (kind === 'text') this.#at = this.#lengthEnd();
      else if (typeof kind === 'string') this.#varint(kind);
      else {
        if (seen.has(number) && !shape.repeated.includes(number)) this.found = true;
        seen.add(number);
        this.message(this.#lengthEnd(), kind);
      }
    }
  }

  #varint(kind: 'uint32' | 'uint64' | 'bool'): number {
    let value = 0n;
    let length = 0;
    for (;;) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw new Error('the bytes are not well formed');
      value |= BigInt(byte & 0x7f) << BigInt(7 * length++);
      if (byte < 0x80) break;
    }
    if (kind !== 'uint64' && length > 5 && length < 10) this.found = true;
    if (kind === 'bool' && (value & 0xffff_ffffn) === 0n && value !== 0n) this.found = true;
    return Number(value);
  }

  #lengthEnd(): number {
    const length = this.#varint('uint32');
    return this.#at + length;
  }

  #skip(tag: number): void {
    const wireType = tag & 7;
    if (wireType === 0) this.#varint('uint64');
    else if (wireType === 1) this.#at += 8;
    else if (wireType === 2) this.#at = this.#lengthEnd();
    else if (wireType === 5) this.#at += 4;
    else if (wireType === 3) {
      for (let inner = this.#varint('uint32'); (inner & 7) !== 4; inner = this.#varint('uint32')) {
        this.#skip(inner);
      }
    }
  }
}

/**
 * Returns whether protobufjs, and therefore the reference codec, reads these bytes of a well-formed RateLimitRequest
 * differently from the protobuf specification (https://protobuf.dev/programming-guides/encoding/). No encoder writes
 * such bytes. The hand-written codec follows the specification:
 *
 * 1. A repeated occurrence of a singular message field (`limit`, `hits_addend` of a descriptor) is merged with the
 *    earlier one. protobufjs keeps only the last one.
 * 2. A number of at most 32 bits may take six to nine bytes (padding, or higher bits, which are dropped). protobufjs
 *    assumes ten bytes for any number longer than five, and continues in the middle of the next field.
 * 3. A bool is true if any of its 64 bits is set. protobufjs tests only 32 of them.
 */
export function protobufjsReadsOtherwise(bytes: Uint8Array): boolean {
  const walker = new Walker(bytes);
  walker.message(bytes.length, request);
  return walker.found;
}
