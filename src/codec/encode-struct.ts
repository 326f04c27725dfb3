/*
 * google.protobuf.Struct, Value and ListValue (google/protobuf/struct.proto): a cold path, so plain rather than fast.
 */
const STRUCT_FIELDS = 0x0a;
const MAP_KEY = 0x0a;
const MAP_VALUE = 0x12;
const VALUE_NULL = 0x08;
const VALUE_NUMBER = 0x11;
const VALUE_STRING = 0x1a;
const VALUE_BOOL = 0x20;
const VALUE_STRUCT = 0x2a;
const VALUE_LIST = 0x32;
const LIST_VALUES = 0x0a;

const NULL_VALUE = Buffer.of(VALUE_NULL, 0);

/** A JSON object as an encoded Struct. Members that JSON has no value for (undefined, functions) are left out. */
export function encodeStruct(object: Readonly<Record<string, unknown>>): Buffer {
  const fields: Buffer[] = [];
  for (const [key, member] of Object.entries(object)) {
    const value = encodeValue(member);
    if (value === undefined) continue;
    const name = lengthDelimited(MAP_KEY, Buffer.from(key));
    fields.push(lengthDelimited(STRUCT_FIELDS, Buffer.concat([name, lengthDelimited(MAP_VALUE, value)])));
  }
  return Buffer.concat(fields);
}

function encodeValue(member: unknown): Buffer | undefined {
  if (member === null) return NULL_VALUE;
  switch (typeof member) {
    case 'number': {
      const bytes = Buffer.alloc(9);
      bytes[0] = VALUE_NUMBER;
      bytes.writeDoubleLE(member, 1);
      return bytes;
    }
    case 'string':
      return lengthDelimited(VALUE_STRING, Buffer.from(member));
    case 'boolean':
      return Buffer.of(VALUE_BOOL, member ? 1 : 0);
    case 'object':
      if (Array.isArray(member)) return lengthDelimited(VALUE_LIST, encodeList(member));
      return lengthDelimited(VALUE_STRUCT, encodeStruct(member as Record<string, unknown>));
    default:
      return undefined;
  }
}

function encodeList(items: readonly unknown[]): Buffer {
  return Buffer.concat(items.map((item) => lengthDelimited(LIST_VALUES, encodeValue(item) ?? NULL_VALUE)));
}

function lengthDelimited(tag: number, bytes: Buffer): Buffer {
  const prefix = [tag];
  let rest = bytes.length;
  for (; rest >= 0x80; rest >>>= 7) prefix.push((rest & 0x7f) | 0x80);
  prefix.push(rest);
  return Buffer.concat([Buffer.from(prefix), bytes]);
}
