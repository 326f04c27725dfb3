import {
  LIST_VALUES,
  MAP_KEY,
  MAP_VALUE,
  STRUCT_FIELDS,
  VALUE_BOOL,
  VALUE_LIST,
  VALUE_NULL,
  VALUE_NUMBER,
  VALUE_STRING,
  VALUE_STRUCT,
} from '../struct-tags.js';
import { cutBefore } from '../text-steps.js';
import type { WireReader } from '../wire-reader.js';

/** Bytes of the wire format that are written in one step. A byte takes about 10 ns. */
const STEP_BYTES = 32 * 1024;
/** Cost of a value in addition to its bytes, in bytes. */
const VALUE_COST_BYTES = 32;

/**
 * Writes an encoded google.protobuf.Struct as JSON, in steps of at most about a millisecond. The Struct must come from
 * this program, whose policies limit the nesting depth of metadata.
 */
export class StructJson {
  readonly #reader: WireReader;
  readonly #pieces: string[] = [];
  #stepLeft = STEP_BYTES;

  /** `reader` must be positioned at the start of the Struct. */
  constructor(reader: WireReader) {
    this.#reader = reader;
  }

  /** Returns the JSON of the Struct, which ends at `end`. */
  *text(end: number): Generator<void, string> {
    yield* this.#struct(end);
    yield;
    return this.#pieces.join('');
  }

  *#struct(end: number): Generator<void, void> {
    const reader = this.#reader;
    this.#pieces.push('{');
    let separator = '';
    while (reader.position < end) {
      const tag = reader.tag(end);
      if (tag !== STRUCT_FIELDS) {
        reader.skipUnknown(tag, 1, end);
        continue;
      }
      this.#pieces.push(separator);
      separator = ',';
      yield* this.#member(reader.lengthEnd(end));
    }
    this.#pieces.push('}');
  }

  /** Reads a member of an object. All encoders write the name first. */
  *#member(end: number): Generator<void, void> {
    const reader = this.#reader;
    let named = false;
    let valued = false;
    while (reader.position < end) {
      const tag = reader.tag(end);
      if (tag === MAP_KEY && !named && !valued) {
        named = true;
        yield* this.#string(reader.lengthEnd(end));
      } else if (tag === MAP_VALUE && !valued) {
        this.#pieces.push(named ? ':' : '"":');
        valued = true;
        yield* this.#value(reader.lengthEnd(end));
      } else reader.fail();
    }
    if (!valued) this.#pieces.push(named ? ':null' : '"":null');
  }

  *#value(end: number): Generator<void, void> {
    const reader = this.#reader;
    this.#stepLeft -= VALUE_COST_BYTES;
    if (reader.position === end) {
      this.#pieces.push('null');
      return;
    }
    const tag = reader.tag(end);
    if (tag === VALUE_STRING) yield* this.#string(reader.lengthEnd(end));
    else if (tag === VALUE_STRUCT) yield* this.#struct(reader.lengthEnd(end));
    else if (tag === VALUE_LIST) yield* this.#list(reader.lengthEnd(end));
    else if (tag === VALUE_BOOL) this.#pieces.push(reader.bool(end) ? 'true' : 'false');
    else if (tag === VALUE_NUMBER) this.#pieces.push(JSON.stringify(reader.double(end)));
    else if (tag === VALUE_NULL) {
      reader.varint(end);
      this.#pieces.push('null');
    } else reader.fail();
    if (reader.position !== end) reader.fail();
    if (this.#stepLeft < 0) yield* this.#pause();
  }

  *#list(end: number): Generator<void, void> {
    const reader = this.#reader;
    this.#pieces.push('[');
    let separator = '';
    while (reader.position < end) {
      if (reader.tag(end) !== LIST_VALUES) reader.fail();
      this.#pieces.push(separator);
      separator = ',';
      yield* this.#value(reader.lengthEnd(end));
    }
    this.#pieces.push(']');
  }

  *#string(end: number): Generator<void, void> {
    const reader = this.#reader;
    const { bytes } = reader;
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#pieces.push('"');
    while (reader.position < end) {
      const start = reader.position;
      const cut = cutBefore(bytes, start + STEP_BYTES, end);
      this.#pieces.push(JSON.stringify(buffer.toString('utf8', start, cut)).slice(1, -1));
      reader.position = cut;
      this.#stepLeft -= cut - start;
      if (this.#stepLeft < 0) yield* this.#pause();
    }
    this.#pieces.push('"');
  }

  *#pause(): Generator<void, void> {
    yield;
    this.#stepLeft = STEP_BYTES;
  }
}
