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
} from './struct-tags.js';
import { MAX_BYTES_PER_UNIT, type WireWriter } from './wire-writer.js';

/*
 * Encodes google.protobuf.Struct, Value and ListValue (google/protobuf/struct.proto), in reverse order, as the writer
 * does.
 */

/** Maximum size of a member or an item without its strings: its tags and lengths, and a double. */
const MAX_MEMBER_BYTES = 40;

/** Returns the maximum number of bytes that {@link writeStruct} writes for `member`. */
export function maxStructBytes(member: unknown): number {
  if (typeof member === 'string') return MAX_MEMBER_BYTES + member.length * MAX_BYTES_PER_UNIT;
  if (typeof member !== 'object' || member === null) return MAX_MEMBER_BYTES;
  let bytes = MAX_MEMBER_BYTES;
  if (Array.isArray(member)) {
    for (const item of member) bytes += maxStructBytes(item);
    return bytes;
  }
  const members = member as Readonly<Record<string, unknown>>;
  for (const key of Object.keys(members)) {
    bytes += key.length * MAX_BYTES_PER_UNIT + maxStructBytes(members[key]);
  }
  return bytes;
}

/** Writes a JSON object as a Struct, without a tag. Omits members that have no JSON value (undefined, functions). */
export function writeStruct(writer: WireWriter, object: Readonly<Record<string, unknown>>): void {
  const keys = Object.keys(object);
  for (let index = keys.length - 1; index >= 0; index--) {
    const key = keys[index] as string;
    const value = object[key];
    if (!hasValue(value)) continue;
    const memberEnd = writer.mark;
    writeValue(writer, value);
    writer.lengthSince(memberEnd, MAP_VALUE);
    writer.presentTextField(MAP_KEY, key);
    writer.lengthSince(memberEnd, STRUCT_FIELDS);
  }
}

function hasValue(member: unknown): boolean {
  const type = typeof member;
  return type === 'string' || type === 'number' || type === 'boolean' || type === 'object';
}

function writeValue(writer: WireWriter, member: unknown): void {
  const end = writer.mark;
  switch (typeof member) {
    case 'number':
      writer.double(member);
      writer.byte(VALUE_NUMBER);
      return;
    case 'string':
      writer.presentTextField(VALUE_STRING, member);
      return;
    case 'boolean':
      writer.byte(member ? 1 : 0);
      writer.byte(VALUE_BOOL);
      return;
    case 'object':
      if (member === null) break;
      if (Array.isArray(member)) {
        writeItems(writer, member);
        writer.lengthSince(end, VALUE_LIST);
      } else {
        writeStruct(writer, member as Record<string, unknown>);
        writer.lengthSince(end, VALUE_STRUCT);
      }
      return;
  }
  writer.byte(0);
  writer.byte(VALUE_NULL);
}

function writeItems(writer: WireWriter, items: readonly unknown[]): void {
  for (let index = items.length - 1; index >= 0; index--) {
    const end = writer.mark;
    writeValue(writer, items[index]);
    writer.lengthSince(end, LIST_VALUES);
  }
}
