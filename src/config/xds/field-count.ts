import type { PackageDefinition } from '@grpc/proto-loader';
import { readVarint } from './varint.js';

/** Number of fields that a descriptor counts in addition to its own, for the memory of its object. */
const DESCRIPTOR_FIELDS = 3;

/** Wire types of protobuf. */
const [VARINT, FIXED64, LENGTH_DELIMITED, FIXED32] = [0, 1, 2, 5];

/** The fields of a message that are messages themselves, by number. */
type NestedMessages = Map<number, NestedMessages>;

/** google.protobuf.DescriptorProto, as returned by proto-loader. */
interface MessageDescriptor {
  readonly name: string;
  readonly field: readonly { readonly number: number; readonly type: string; readonly typeName: string }[];
  readonly nestedType: readonly MessageDescriptor[];
}

/** Counts the fields of messages before they are decoded. */
export class FieldCounter {
  readonly #root: NestedMessages;
  readonly #descriptor: NestedMessages;

  /**
   * `root` is the full name of the message to count. `descriptor` is that of the message that counts {@link
   * DESCRIPTOR_FIELDS} more.
   */
  constructor(definition: PackageDefinition, root: string, descriptor: string) {
    const known = new Map<string, NestedMessages>();
    this.#root = nestedMessagesOf(definition, root, known);
    this.#descriptor = known.get(descriptor) as NestedMessages;
  }

  /**
   * Returns the number of fields in a message and its nested messages, which determines the memory for decoding it: up
   * to a hundred times the bytes of an empty field. Stops counting above `most`, and then returns a greater number.
   * Invalid bytes are counted as far as they can be read, because the decoder rejects them.
   */
  count(bytes: Uint8Array, most: number): number {
    const ends: number[] = [bytes.length];
    const parts: NestedMessages[] = [this.#root];
    let count = 0;
    let at = 0;
    while (ends.length > 0) {
      if (at >= (ends.at(-1) as number)) {
        ends.pop();
        parts.pop();
        continue;
      }
      if (++count > most) return count;
      const tag = readVarint(bytes, at);
      if (tag === undefined) return count;
      at = tag[1];
      const wire = tag[0] % 8;
      if (wire === VARINT) {
        const value = readVarint(bytes, at);
        if (value === undefined) return count;
        at = value[1];
      } else if (wire === FIXED64) at += 8;
      else if (wire === FIXED32) at += 4;
      else if (wire === LENGTH_DELIMITED) {
        const length = readVarint(bytes, at);
        if (length === undefined) return count;
        at = length[1];
        const inner = parts.at(-1)?.get(Math.floor(tag[0] / 8));
        if (inner === undefined) at += length[0];
        else {
          if (inner === this.#descriptor) count += DESCRIPTOR_FIELDS;
          ends.push(Math.min(at + length[0], ends.at(-1) as number));
          parts.push(inner);
        }
      } else return count;
    }
    return count;
  }
}

/** `known` has the message types that were visited before. */
function nestedMessagesOf(
  definition: PackageDefinition,
  name: string,
  known: Map<string, NestedMessages>,
): NestedMessages {
  const met = known.get(name);
  if (met !== undefined) return met;
  const parts: NestedMessages = new Map();
  known.set(name, parts);
  addParts(definition, descriptorOf(definition, name), name, parts, known);
  return parts;
}

function addParts(
  definition: PackageDefinition,
  { field: fields, nestedType }: MessageDescriptor,
  scope: string,
  parts: NestedMessages,
  known: Map<string, NestedMessages>,
): void {
  for (const { number, type, typeName } of fields) {
    if (type !== 'TYPE_MESSAGE') continue;
    // The type of map entries is nested in the message itself.
    const entry = nestedType.find((nested) => nested.name === typeName);
    if (entry !== undefined) {
      const inner: NestedMessages = new Map();
      parts.set(number, inner);
      addParts(definition, entry, scope, inner, known);
      continue;
    }
    const name = typeName in definition ? typeName : `${packageOf(scope)}.${typeName}`;
    if (!isSingleValue(definition, name)) parts.set(number, nestedMessagesOf(definition, name, known));
  }
}

/** Tells whether a type counts as a single value: google.protobuf.Duration, Timestamp and wrappers. */
function isSingleValue(definition: PackageDefinition, name: string): boolean {
  const isWellKnown = packageOf(name) === 'google.protobuf';
  return isWellKnown && descriptorOf(definition, name).field.every(({ type }) => type !== 'TYPE_MESSAGE');
}

function descriptorOf(definition: PackageDefinition, name: string): MessageDescriptor {
  return (definition[name] as { readonly type: unknown }).type as MessageDescriptor;
}

function packageOf(name: string): string {
  return name.slice(0, name.lastIndexOf('.'));
}
