import { isUtf8 } from 'node:buffer';
import { DecodeError, MAX_ENTRIES, moreDescriptorsThan, TOO_MANY_ENTRIES } from '../messages.js';
import { JsonTextCopy, shortText } from './json-text.js';
import { type JsonBounds, type JsonNode, readJson } from './json-tree.js';

/* Tags (field number * 8 + wire type) by message. */
const REQUEST_DOMAIN = 0x0a;
const REQUEST_DESCRIPTORS = 0x12;
const REQUEST_HITS_ADDEND = 0x18;
const DESCRIPTOR_ENTRIES = 0x0a;
const DESCRIPTOR_LIMIT = 0x12;
const DESCRIPTOR_HITS_ADDEND = 0x1a;
const DESCRIPTOR_IS_NEGATIVE_HITS = 0x20;
const ENTRY_KEY = 0x0a;
const ENTRY_VALUE = 0x12;
const OVERRIDE_REQUESTS_PER_UNIT = 0x08;
const OVERRIDE_UNIT = 0x10;
const WRAPPER_VALUE = 0x08;

/** Field names of a message, as in the proto file and in camelCase, with the index of each in {@link Members}. */
type Fields = ReadonlyMap<string, number>;
const REQUEST: Fields = new Map([
  ['domain', 0],
  ['descriptors', 1],
  ['hitsAddend', 2],
  ['hits_addend', 2],
]);
const DESCRIPTOR: Fields = new Map([
  ['entries', 0],
  ['limit', 1],
  ['hitsAddend', 2],
  ['hits_addend', 2],
  ['isNegativeHits', 3],
  ['is_negative_hits', 3],
]);
const ENTRY: Fields = new Map([
  ['key', 0],
  ['value', 1],
]);
const OVERRIDE: Fields = new Map([
  ['requestsPerUnit', 0],
  ['requests_per_unit', 0],
  ['unit', 1],
]);
/** envoy.type.v3.RateLimitUnit. */
const UNITS: ReadonlyMap<string, number> = new Map(
  ['UNKNOWN', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR'].map((name, number) => [name, number]),
);

/** Values of an object by the index of their field. Undefined if the field is absent or null. */
type Members = (JsonNode | undefined)[];

const UINT32_MAX = 0xffff_ffff;
const UINT64_MAX = (1n << 64n) - 1n;
export const MAX_JSON_DEPTH = 16;
/**
 * Maximum number of members of one object. Messages have at most 4 fields. Objects with more members are not read to
 * the end.
 */
export const MAX_MEMBERS = 100;
/** Depths of the lists of descriptors and entries. The outermost value is at depth 1. */
const DESCRIPTORS_DEPTH = 2;
const ENTRIES_DEPTH = 4;
/** Longer strings are copied in steps. Bytes. */
const PIECE_BYTES = 128 * 1024;
/** Bytes of JSON that are processed in one step. */
const STEP_BYTES = 128 * 1024;
/** Cost of an object in addition to its bytes, in bytes. */
const OBJECT_COST_BYTES = 400;
/** Maximum length of a name, a number or an enum. */
const MAX_SHORT_TEXT = 1024;
/** Maximum length of caller input that is quoted in error messages. */
const MAX_SHOWN = 30;
const MAX_SHOWN_NAME = 200;

/**
 * Returns limits that allow the maximum number of descriptors and entries. An entry contains 5 values and names, a
 * descriptor 13.
 */
function boundsOf(maxDescriptors: number): JsonBounds {
  return {
    values: 6 * MAX_ENTRIES + 20 * maxDescriptors,
    depth: MAX_JSON_DEPTH,
    members: MAX_MEMBERS,
    items: new Map([
      [DESCRIPTORS_DEPTH, { most: maxDescriptors, sentence: moreDescriptorsThan(maxDescriptors) }],
      [ENTRIES_DEPTH, { most: MAX_ENTRIES, sentence: TOO_MANY_ENTRIES }],
    ]),
  };
}

/**
 * Converts a RateLimitRequest from protobuf JSON to the wire format, in steps of at most about a millisecond. Throws
 * {@link DecodeError} with a sentence for the caller, also for more than `maxDescriptors` descriptors, in which case
 * nothing further is read.
 */
export function* requestFromJson(json: Uint8Array, maxDescriptors: number): Generator<void, Uint8Array> {
  if (!isUtf8(json)) throw new DecodeError('the body is not JSON: it is not valid UTF-8');
  const hasMark = json[0] === 0xef && json[1] === 0xbb && json[2] === 0xbf;
  const bytes = hasMark ? json.subarray(3) : json;
  const root = yield* readJson(bytes, boundsOf(maxDescriptors));
  return yield* new RequestWriter(bytes).write(root);
}

/** Writes fields in reverse order, so that lengths are known when they are written. */
class RequestWriter {
  readonly #json: Uint8Array;
  /**
   * The wire format is shorter than the JSON: a JSON field contains its name, and an encoded field a tag, a length and
   * at most ten bytes of a number.
   */
  readonly #out: Uint8Array;
  #at: number;
  #stepLeft = STEP_BYTES;
  /** Index of the descriptor and entry that are being written, for error messages. -1: none. */
  #descriptor = -1;
  #entry = -1;

  constructor(json: Uint8Array) {
    this.#json = json;
    this.#out = Buffer.allocUnsafeSlow(json.length + 64);
    this.#at = this.#out.length;
  }

  *write(root: JsonNode): Generator<void, Uint8Array> {
    const [domain, descriptors, hits] = this.#members(root, REQUEST, '');
    this.#varintField(REQUEST_HITS_ADDEND, this.#uint32(hits, 'hitsAddend'));
    const list = this.#list(descriptors, 'descriptors');
    for (let index = list.length - 1; index >= 0; index--) {
      this.#descriptor = index;
      yield* this.#writeDescriptor(list[index] as JsonNode);
    }
    this.#descriptor = -1;
    yield* this.#writeText(REQUEST_DOMAIN, domain, 'domain');
    return this.#out.subarray(this.#at);
  }

  *#writeDescriptor(node: JsonNode): Generator<void, void> {
    const end = this.#at;
    const [entries, limit, hits, isNegativeHits] = this.#members(node, DESCRIPTOR, '');
    if (this.#bool(isNegativeHits, 'isNegativeHits')) this.#varintField(DESCRIPTOR_IS_NEGATIVE_HITS, 1);
    if (hits !== undefined) {
      const wrapperEnd = this.#at;
      const count = this.#uint64(hits, 'hitsAddend');
      if (count > 0n) this.#bigVarintField(WRAPPER_VALUE, count);
      this.#lengthSince(wrapperEnd, DESCRIPTOR_HITS_ADDEND);
    }
    if (limit !== undefined) this.#writeOverride(limit);
    const list = this.#list(entries, 'entries');
    for (let index = list.length - 1; index >= 0; index--) {
      this.#entry = index;
      const entryEnd = this.#at;
      const [key, value] = this.#members(list[index] as JsonNode, ENTRY, '');
      yield* this.#writeText(ENTRY_VALUE, value, 'value');
      yield* this.#writeText(ENTRY_KEY, key, 'key');
      this.#lengthSince(entryEnd, DESCRIPTOR_ENTRIES);
      if (this.#stepLeft < 0) yield* this.#pause();
    }
    this.#entry = -1;
    this.#lengthSince(end, REQUEST_DESCRIPTORS);
    if (this.#stepLeft < 0) yield* this.#pause();
  }

  #writeOverride(node: JsonNode): void {
    const end = this.#at;
    const [requestsPerUnit, unit] = this.#members(node, OVERRIDE, 'limit');
    const number = this.#unit(unit);
    // A negative int32 is encoded as an int64.
    if (number < 0) this.#bigVarintField(OVERRIDE_UNIT, BigInt.asUintN(64, BigInt(number)));
    else this.#varintField(OVERRIDE_UNIT, number);
    this.#varintField(OVERRIDE_REQUESTS_PER_UNIT, this.#uint32(requestsPerUnit, 'limit.requestsPerUnit'));
    this.#lengthSince(end, DESCRIPTOR_LIMIT);
  }

  *#writeText(tag: number, node: JsonNode | undefined, field: string): Generator<void, void> {
    if (node === undefined) return;
    if (node.kind !== 'string') this.#refuse(field, 'expected string', node);
    if (node.hasLoneSurrogate) this.#refuse(field, 'a lone surrogate is not valid text');
    const length = node.utf8Length;
    if (length === 0) return;
    this.#at -= length;
    const copy = new JsonTextCopy(this.#json, node, this.#out, this.#at);
    this.#stepLeft -= Math.min(PIECE_BYTES, node.end - node.start);
    while (!copy.advance(PIECE_BYTES)) {
      yield* this.#pause();
      this.#stepLeft -= PIECE_BYTES;
    }
    this.#varint(length);
    this.#byte(tag);
  }

  *#pause(): Generator<void, void> {
    yield;
    this.#stepLeft = STEP_BYTES;
  }

  /** A field that occurs twice, in either spelling, is rejected, because it is an error in protobuf JSON. */
  #members(node: JsonNode, fields: Fields, field: string): Members {
    if (node.kind !== 'object') this.#refuse(field, 'expected object', node);
    const { names, values } = node;
    this.#stepLeft -= OBJECT_COST_BYTES;
    const members: Members = [];
    let seen = 0;
    for (let index = 0; index < names.length; index++) {
      const nameNode = names[index] as JsonNode;
      const name = shortText(this.#json, nameNode, MAX_SHORT_TEXT) ?? '…';
      const place = fields.get(name);
      if (place === undefined) this.#refuse(field, `key "${shown(name, MAX_SHOWN_NAME)}" is unknown`);
      const bit = 1 << place;
      if ((seen & bit) !== 0) this.#refuse(name, 'set multiple times');
      seen |= bit;
      const value = values[index] as JsonNode;
      members[place] = value.kind === 'null' ? undefined : value;
    }
    this.#stepLeft -= OBJECT_COST_BYTES * (names.length >> 2);
    return members;
  }

  #list(node: JsonNode | undefined, field: string): readonly JsonNode[] {
    if (node === undefined) return [];
    if (node.kind !== 'array') this.#refuse(field, 'expected Array', node);
    return node.values;
  }

  #bool(node: JsonNode | undefined, field: string): boolean {
    if (node === undefined) return false;
    if (node.kind !== 'true' && node.kind !== 'false') this.#refuse(field, 'expected boolean', node);
    return node.kind === 'true';
  }

  /** Returns the text of a number, or of a string that may contain a number. */
  #numeral(node: JsonNode): string | undefined {
    if (node.kind === 'number')
      return Buffer.from(this.#json.subarray(node.start, node.end)).toString('latin1');
    return node.kind === 'string' ? shortText(this.#json, node, MAX_SHORT_TEXT) : undefined;
  }

  #uint32(node: JsonNode | undefined, field: string): number {
    if (node === undefined) return 0;
    const text = this.#numeral(node);
    const number = text === undefined || text === '' || text.trim() !== text ? Number.NaN : Number(text);
    if (!Number.isInteger(number)) this.#refuse(field, 'expected number (uint32)', node);
    if (number < 0 || number > UINT32_MAX) this.#refuse(field, 'out of the range of uint32', node);
    return number;
  }

  #uint64(node: JsonNode, field: string): bigint {
    const text = this.#numeral(node) ?? '';
    const count = text === '' ? undefined : bigIntOf(text, node.kind === 'number');
    if (count === undefined) this.#refuse(field, 'expected bigint (uint64)', node);
    if (count < 0n || count > UINT64_MAX) this.#refuse(field, 'out of the range of uint64', node);
    return count;
  }

  #unit(node: JsonNode | undefined): number {
    if (node === undefined) return 0;
    const text = this.#numeral(node) ?? '';
    const number = node.kind === 'string' ? UNITS.get(text) : Number(text === '' ? 'none' : text);
    // Any int32 is allowed, because a proto3 enum may contain numbers without a name.
    if (number === undefined || number !== (number | 0)) {
      this.#refuse('limit.unit', 'expected enum envoy.type.v3.RateLimitUnit', node);
    }
    return number;
  }

  #varintField(tag: number, value: number): void {
    if (value === 0) return;
    this.#varint(value);
    this.#byte(tag);
  }

  #bigVarintField(tag: number, value: bigint): void {
    const bytes: number[] = [];
    let rest = value;
    for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
    bytes.push(Number(rest));
    this.#at -= bytes.length;
    this.#out.set(bytes, this.#at);
    this.#byte(tag);
  }

  /** Writes an unsigned integer of at most 32 bits. */
  #varint(value: number): void {
    let size = 1;
    for (let rest = value >>> 7; rest > 0; rest >>>= 7) size++;
    this.#at -= size;
    let at = this.#at;
    let rest = value;
    for (; size > 1; size--) {
      this.#out[at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#out[at] = rest;
  }

  #byte(value: number): void {
    this.#out[--this.#at] = value;
  }

  #lengthSince(end: number, tag: number): void {
    this.#varint(end - this.#at);
    this.#byte(tag);
  }

  /** @param field path within the current message, or '' for the message itself */
  #refuse(field: string, why: string, got?: JsonNode): never {
    const path = [
      ...(this.#descriptor < 0 ? [] : [`descriptors[${this.#descriptor}]`]),
      ...(this.#entry < 0 ? [] : [`entries[${this.#entry}]`]),
      ...(field === '' ? [] : [field]),
    ].join('.');
    const where = path === '' ? 'RateLimitRequest' : `RateLimitRequest.${path}`;
    throw new DecodeError(
      `cannot decode ${where} from JSON: ${why}${got === undefined ? '' : `, got ${this.#shown(got)}`}`,
    );
  }

  #shown(node: JsonNode): string {
    switch (node.kind) {
      case 'string': {
        const text = shortText(this.#json, node, MAX_SHOWN);
        return text === undefined ? 'string' : `"${text}"`;
      }
      case 'number':
        return shown(this.#numeral(node) ?? '', MAX_SHOWN);
      case 'array':
        return `Array(${node.values.length})`;
      default:
        return node.kind;
    }
  }
}

/** Parses an integer as a bigint. A JavaScript number would round integers that protobuf represents exactly. */
function bigIntOf(text: string, isNumber: boolean): bigint | undefined {
  try {
    if (!isNumber || /^-?\d+$/.test(text)) return BigInt(text);
    return BigInt(Number(text));
  } catch {
    // SyntaxError and RangeError mean that the text is not an integer.
    return undefined;
  }
}

function shown(text: string, maxLength: number): string {
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text;
}
