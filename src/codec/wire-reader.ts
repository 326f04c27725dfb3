import { DecodeError } from './messages.js';

/** Maximum nesting depth of unknown groups, as in other protobuf implementations. */
const MAX_GROUP_DEPTH = 100;
const TWO_POW_32 = 0x1_0000_0000;

const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;
const GROUP_START = 3;
const GROUP_END = 4;
const FIXED32 = 5;

/**
 * Reads the parts of a protobuf message (https://protobuf.dev/programming-guides/encoding/) in place. Each method takes
 * the end of the current message, and throws {@link DecodeError} instead of reading past it. Reused for one message
 * after another.
 */
export class WireReader {
  bytes: Uint8Array = new Uint8Array(0);
  position = 0;
  /** Up to 38 bits above the low 32 bits of the last {@link varint}. */
  high = 0;
  readonly #errorMessage: string;
  #cutAt = -1;

  /** @param sentence message of the DecodeError for malformed input; sent to callers */
  constructor(sentence: string) {
    this.#errorMessage = sentence;
  }

  /**
   * Starts reading at `bytes[start]`. If only the bytes before `cutAt` are read, a field may be longer than they are.
   */
  reset(bytes: Uint8Array, start = 0, cutAt = -1): void {
    this.bytes = bytes;
    this.position = start;
    this.#cutAt = cutAt;
  }

  /** Reads the tag of the next field: field number * 8 + wire type. The field number is at least 1. */
  tag(end: number): number {
    const tag = this.varint(end);
    if (tag < 8 || this.high !== 0) this.fail();
    return tag;
  }

  /** Reads a varint of at most 10 bytes. Returns the low 32 bits, unsigned, and stores the rest in {@link high}. */
  varint(end: number): number {
    const at = this.position;
    if (at < end) {
      const byte = this.bytes[at] as number;
      if (byte < 0x80) {
        this.position = at + 1;
        this.high = 0;
        return byte;
      }
    }
    return this.#longVarint(end);
  }

  /** Reads a uint64. Values that a JavaScript number cannot represent exactly become 2^53-1. */
  saturatedUint64(end: number): number {
    const low = this.varint(end);
    if (this.high === 0) return low;
    return Math.min((this.high >>> 0) * TWO_POW_32 + low, Number.MAX_SAFE_INTEGER);
  }

  /** Reads a bool, which is true if any of its 64 bits is set. */
  bool(end: number): boolean {
    const low = this.varint(end);
    return low !== 0 || this.high >>> 0 !== 0;
  }

  double(end: number): number {
    const at = this.position;
    this.#skipBytes(8, end);
    return new DataView(this.bytes.buffer, this.bytes.byteOffset + at, 8).getFloat64(0, true);
  }

  /** Reads a length. Returns the end of the data that it measures, or the place of the cut before it. */
  lengthEnd(end: number): number {
    const length = this.varint(end);
    if (this.high !== 0 || length > end - this.position) {
      if (end === this.#cutAt) return end;
      this.fail();
    }
    return this.position + length;
  }

  /**
   * Skips the field with this tag. Field numbers up to `lastKnown` are known, so such a field has a wrong wire type and
   * is rejected. Skips groups without recursion, so that no nesting depth can exhaust the stack.
   */
  skipUnknown(tag: number, lastKnown: number, end: number): void {
    if (tag >>> 3 <= lastKnown) this.fail();
    if ((tag & 7) === GROUP_START) this.#skipGroup(tag, end);
    else this.#skipValue(tag & 7, end);
  }

  fail(): never {
    throw new DecodeError(this.#errorMessage);
  }

  #longVarint(end: number): number {
    let low = 0;
    let high = 0;
    const first = this.position;
    const last = Math.min(end, first + 10);
    for (let at = first; at < last; at++) {
      const byte = this.bytes[at] as number;
      const bits = byte & 0x7f;
      const index = at - first;
      if (index < 4) low |= bits << (7 * index);
      else if (index === 4) {
        low |= bits << 28;
        high = bits >>> 4;
      } else {
        high += bits * 2 ** (7 * index - 32);
      }
      if (byte < 0x80) {
        this.position = at + 1;
        this.high = high;
        return low >>> 0;
      }
    }
    return this.fail();
  }

  #skipValue(wireType: number, end: number): void {
    switch (wireType) {
      case VARINT:
        this.varint(end);
        return;
      case FIXED64:
        this.#skipBytes(8, end);
        return;
      case LENGTH_DELIMITED:
        this.position = this.lengthEnd(end);
        return;
      case FIXED32:
        this.#skipBytes(4, end);
        return;
      default:
        this.fail();
    }
  }

  #skipGroup(firstTag: number, end: number): void {
    const open = [firstTag >>> 3];
    while (open.length > 0) {
      const tag = this.tag(end);
      const wireType = tag & 7;
      if (wireType === GROUP_START) {
        if (open.push(tag >>> 3) > MAX_GROUP_DEPTH) this.fail();
      } else if (wireType === GROUP_END) {
        if (open.pop() !== tag >>> 3) this.fail();
      } else {
        this.#skipValue(wireType, end);
      }
    }
  }

  #skipBytes(count: number, end: number): void {
    if (count > end - this.position) this.fail();
    this.position += count;
  }
}
