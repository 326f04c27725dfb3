import type { Field, Fields, MappingName } from '../../../src/config/read/field.js';
import { POLICY_FIELDS } from '../../../src/config/read/policy-fields.js';
import { parseGoDuration } from '../../../src/config/yaml/go-duration.js';

type Json = Readonly<Record<string, unknown>>;

/** Returns the fields of a mapping, in the form of its message. */
export function fieldsOf(mapping: MappingName): Fields {
  return POLICY_FIELDS[mapping];
}

/**
 * Converts a policy file, as JSON, into a RateLimitConfig with fields named as in proto/, as a management server that
 * reads policy files would do. `visit` is called with every key.
 */
export function resourceOf(
  file: Json,
  visit: (mapping: MappingName, key: string) => void = () => {},
): Record<string, unknown> {
  return { name: 'r', ...messageOf('file', file, visit) };
}

function messageOf(
  mapping: MappingName,
  json: Json,
  visit: (mapping: MappingName, key: string) => void,
): Record<string, unknown> {
  const fields = fieldsOf(mapping);
  const message: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(json)) {
    const field = fields[key];
    if (field === undefined && mapping === 'derive_rule') {
      message['conditions'] = { ...(message['conditions'] as Json), [key]: String(value) };
      continue;
    }
    if (field === undefined) throw new Error(`${mapping} has no key ${key}`);
    visit(mapping, key);
    const isObject = typeof value === 'object';
    const { xds } = field;
    const below = (name: MappingName, one: unknown) => messageOf(name, one as Json, visit);
    message[isObject && typeof xds === 'object' ? xds.mappingIn : key] = encoded(field, value, below);
  }
  return message;
}

function encoded(field: Field, value: unknown, below: (name: MappingName, one: unknown) => object): unknown {
  if (field.xds === 'file_only') throw new Error('no management server sends this');
  if (field.xds === 'wrapped') return { value };
  switch (field.kind) {
    case 'mapping':
      return below(field.of, value);
    case 'list':
      return (value as readonly unknown[]).map((one) => below(field.of, one));
    case 'unit':
      return String(value).toUpperCase();
    case 'texts':
      return Array.isArray(value) ? value : [value];
    case 'words':
      return (value as readonly string[]).length === 0 ? [''] : value;
    case 'duration': {
      const nanos = parseGoDuration(value as string) as bigint;
      return { seconds: Number(nanos / 1_000_000_000n), nanos: Number(nanos % 1_000_000_000n) };
    }
    case 'time': {
      const millis = Date.parse(value as string);
      return { seconds: Math.floor(millis / 1000), nanos: (millis - Math.floor(millis / 1000) * 1000) * 1e6 };
    }
    case 'metadata':
      return structOf(value as Json);
    case 'headers':
      return Object.assign({}, ...(value as readonly object[]));
    case 'kept_hits':
      return Object.fromEntries(Object.entries(value as object).map(([name, kept]) => [name, String(kept)]));
    case 'key_table':
      return { tenants: value };
    case 'word_or_mapping': {
      const isWord = typeof value === 'string';
      if (field.xds === 'preset') return isWord ? { preset: value } : { custom: below(field.of, value) };
      return isWord ? value : below(field.of, value);
    }
    default:
      return value;
  }
}

function structOf(json: Json): object {
  return {
    fields: Object.fromEntries(Object.entries(json).map(([key, value]) => [key, structValue(value)])),
  };
}

function structValue(json: unknown): object {
  if (json === null) return { nullValue: 0 };
  if (Array.isArray(json)) return { listValue: { values: json.map(structValue) } };
  if (typeof json === 'object') return { structValue: structOf(json as Json) };
  return { [`${typeof json}Value`.replace('boolean', 'bool')]: json };
}
