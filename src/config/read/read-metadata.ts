import { joinPath, type YamlMap, type YamlValue } from '../yaml/yaml-document.js';
import { goText, readPlain } from '../yaml/yaml-value.js';
import type { FieldReader } from './field-reader.js';

/** The `metadata` of a descriptor: a frozen JSON object. */
export type Metadata = Readonly<Record<string, unknown>>;

/**
 * Maximum nesting of mappings and lists. Each level takes three nested messages of a google.protobuf.Struct, and Envoy
 * accepts at most 100.
 */
export const MAX_METADATA_DEPTH = 30;

/**
 * Reads `metadata`: any mapping, converted to a google.protobuf.Struct as in envoyproxy/ratelimit. Unquoted values
 * follow YAML 1.1, numbers become doubles, and keys become strings. Undefined if absent, empty or invalid.
 */
export function readMetadata(reader: FieldReader, key: string): Metadata | undefined {
  const metadata = reader.mapping(key);
  if (metadata === undefined || metadata.map.fields.size === 0) return undefined;
  const errorsBefore = reader.problems.errorCount;
  const value = readMapping(metadata.map, metadata.path, 1, metadata);
  return reader.problems.errorCount > errorsBefore ? undefined : value;
}

function readMapping(map: YamlMap, path: string, depth: number, reader: FieldReader): Metadata {
  const pairs = [...map.fields.values()].map((field): readonly [string, unknown] => {
    // Top-level keys stay as written. Keys below are read as values and printed: 0x1F becomes 31.
    const key = depth === 1 || field.keyPlain !== true ? field.key : goText(readPlain(field.key), field.key);
    const below = field.shown ? joinPath(path, field.key) : `${path}[${field.index}]`;
    return [key, readValue(field.value, below, depth, reader)];
  });
  return Object.freeze(Object.fromEntries(pairs));
}

function readValue(value: YamlValue, path: string, depth: number, reader: FieldReader): unknown {
  if (value.kind !== 'scalar' && depth === MAX_METADATA_DEPTH) {
    const message =
      `"metadata" is nested more than ${MAX_METADATA_DEPTH} levels deep, which Envoy cannot read; flatten ` +
      'the metadata';
    reader.problems.error(value.at, path, message);
    return undefined;
  }
  if (value.kind === 'map') return readMapping(value, path, depth + 1, reader);
  if (value.kind === 'list') {
    return Object.freeze(value.items.map((item, i) => readValue(item, `${path}[${i}]`, depth + 1, reader)));
  }
  if (!value.plain) return value.text;
  const plain = readPlain(value.text);
  if (plain.kind === 'text') return value.text;
  if (plain.kind === 'null') return null;
  if (plain.kind === 'float' && !Number.isFinite(plain.value)) {
    const message =
      `"${value.text}" cannot be represented in JSON, the format of metadata; write another number, or ` +
      'put it in quotes';
    reader.problems.error(value.at, path, message);
    return undefined;
  }
  return plain.kind === 'integer' ? Number(plain.value) : plain.value;
}
