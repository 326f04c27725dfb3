/**
 * Content of one field: a varint, a string or bytes, or a message. The index of a shape is the field number; fields
 * without a shape are unknown and may contain anything well-formed.
 */
export type FieldShape = 'varint' | 'bytes' | MessageShape;
export type MessageShape = readonly (FieldShape | undefined)[];

/** Maximum nesting depth of unknown groups, as in the protobuf implementations. */
const MAX_GROUP_DEPTH = 100;
const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;
const GROUP_START = 3;
const GROUP_END = 4;
const FIXED32 = 5;

/** Reads tags and lengths. Each method sets `failed` instead of reading past the given end. */
class WireCursor {
  failed = false;
  readonly #bytes: Uint8Array;
  #position = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get position(): number {
    return this.#position;
  }

  /** Reads a varint of at most 10 bytes. Values above 2^53 are rounded, which is enough for tags and lengths. */
  varint(end: number): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 10 && this.#position < end; i++) {
      const byte = this.#bytes[this.#position++] as number;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    this.failed = true;
    return 0;
  }

  skip(length: number, end: number): void {
    if (length > end - this.#position) this.failed = true;
    else this.#position += length;
  }
}

/**
 * Returns whether `bytes` are a well-formed protobuf message (https://protobuf.dev/programming-guides/encoding/) whose
 * known fields have the wire type of `shape`, and whose fields all end within the message. protobufjs ignores wire
 * types and truncates a string that exceeds the message, so it would decode data that was never sent.
 */
export function isWellFormed(bytes: Uint8Array, shape: MessageShape): boolean {
  const cursor = new WireCursor(bytes);
  checkMessage(cursor, bytes.length, shape);
  return !cursor.failed;
}

function checkMessage(cursor: WireCursor, end: number, shape: MessageShape): void {
  while (!cursor.failed && cursor.position < end) {
    const tag = cursor.varint(end);
    if (!isTag(tag)) {
      cursor.failed = true;
      return;
    }
    const field = shape[Math.floor(tag / 8)];
    if (field === undefined) skipUnknown(cursor, tag, end);
    else checkKnown(cursor, tag & 7, end, field);
  }
}

function checkKnown(cursor: WireCursor, wireType: number, end: number, field: FieldShape): void {
  if (wireType !== (field === 'varint' ? VARINT : LENGTH_DELIMITED)) {
    cursor.failed = true;
    return;
  }
  const value = cursor.varint(end);
  if (field === 'varint') return;
  const start = cursor.position;
  if (value > end - start) cursor.failed = true;
  else if (field === 'bytes') cursor.skip(value, end);
  else checkMessage(cursor, start + value, field);
}

/** Skips an unknown field. Groups are skipped without recursion, so that deep nesting cannot exhaust the stack. */
function skipUnknown(cursor: WireCursor, firstTag: number, end: number): void {
  const groups: number[] = [];
  let tag = firstTag;
  for (;;) {
    const number = Math.floor(tag / 8);
    switch (tag & 7) {
      case VARINT:
        cursor.varint(end);
        break;
      case FIXED64:
        cursor.skip(8, end);
        break;
      case LENGTH_DELIMITED:
        cursor.skip(cursor.varint(end), end);
        break;
      case FIXED32:
        cursor.skip(4, end);
        break;
      case GROUP_START:
        if (groups.push(number) > MAX_GROUP_DEPTH) cursor.failed = true;
        break;
      case GROUP_END:
        if (groups.pop() !== number) cursor.failed = true;
        break;
      default:
        cursor.failed = true;
    }
    if (cursor.failed || groups.length === 0) return;
    tag = cursor.varint(end);
    if (!isTag(tag)) cursor.failed = true;
    if (cursor.failed) return;
  }
}

/** Returns whether a number is a valid tag: a uint32 with a field number of at least 1. */
function isTag(tag: number): boolean {
  return tag >= 8 && tag <= 0xffff_ffff;
}
