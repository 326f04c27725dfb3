import type { PackageDefinition } from '@grpc/proto-loader';
import { readVarint } from './varint.js';

/** What a descriptor takes memory for beside its fields: it counts for so many more. */
const DESCRIPTOR_FIELDS = 3;

/** Wire types of protobuf. */
const [VARINT, FIXED64, LENGTH_DELIMITED, FIXED32] = [0, 1, 2, 5];

/** A message, as far as counting its fields asks: those of its fields that are messages, by number. */
type Parts = Map<number, Parts>;

/** google.protobuf.DescriptorProto, as proto-loader has it. */
interface MessageDescriptor {
  readonly name: string;
  readonly field: readonly { readonly number: number; readonly type: string; readonly typeName: string }[];
  readonly nestedType: readonly MessageDescriptor[];
}

/** Counts the fields of messages before they are decoded. */
export class FieldCounter {
  readonly #root: Parts;
  readonly #descriptor: Parts;

  /** `root`: the full name of the message that is counted; `descriptor`: of that which counts for more. */
  constructor(definition: PackageDefinition, root: string, descriptor: string) {
    const known = new Map<string, Parts>();
    this.#root = partsOf(definition, root, known);
    this.#descriptor = known.get(descriptor) as Parts;
  }

  /**
   * How many fields a message has, those of its parts included: what decoding it takes memory for, which is a hundred
   * times the bytes of a field that is empty. A descriptor counts for four. Counts no further than `most`, and beyond
   * that gives more. Bytes that are no such message are left to the decoder: they are counted as far as they can be
   * read.
   */
  count(bytes: Uint8Array, most: number): number {
    const ends: number[] = [bytes.length];
    const parts: Parts[] = [this.#root];
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

/** `known` has the messages that were met before. */
function partsOf(definition: PackageDefinition, name: string, known: Map<string, Parts>): Parts {
  const met = known.get(name);
  if (met !== undefined) return met;
  const parts: Parts = new Map();
  known.set(name, parts);
  addParts(definition, descriptorOf(definition, name), name, parts, known);
  return parts;
}

function addParts(
  definition: PackageDefinition,
  { field: fields, nestedType }: MessageDescriptor,
  scope: string,
  parts: Parts,
  known: Map<string, Parts>,
): void {
  for (const { number, type, typeName } of fields) {
    if (type !== 'TYPE_MESSAGE') continue;
    // The entries of a map: a message that only its own one knows.
    const entry = nestedType.find((nested) => nested.name === typeName);
    if (entry !== undefined) {
      const inner: Parts = new Map();
      parts.set(number, inner);
      addParts(definition, entry, scope, inner, known);
      continue;
    }
    const name = typeName in definition ? typeName : `${packageOf(scope)}.${typeName}`;
    if (!isSingleValue(definition, name)) parts.set(number, partsOf(definition, name, known));
  }
}

/** google.protobuf.Duration, Timestamp and wrappers stand for a value: they count as one. */
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
