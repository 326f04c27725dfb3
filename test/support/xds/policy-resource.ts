import {
  type FieldForm,
  type MappingFields,
  type MappingName,
  POLICY_FIELDS,
} from '../../../src/config/read/policy-fields.js';
import { parseGoDuration } from '../../../src/config/yaml/go-duration.js';

type Json = Readonly<Record<string, unknown>>;

/** Returns the fields of a mapping, in the form of its message. */
export function fieldsOf(mapping: MappingName): MappingFields {
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
    const form = fields[key];
    if (form === undefined && mapping === 'derive_rule') {
      message['conditions'] = { ...(message['conditions'] as Json), [key]: String(value) };
      continue;
    }
    if (form === undefined) throw new Error(`${mapping} has no key ${key}`);
    visit(mapping, key);
    const isObject = typeof value === 'object';
    const suffix = form === 'phase' ? '_schedule' : form === 'store_failure' ? '_share' : '';
    const below = (name: MappingName, one: unknown) => messageOf(name, one as Json, visit);
    message[isObject ? key + suffix : key] = encoded(form, value, below);
  }
  return message;
}

function encoded(
  form: FieldForm,
  value: unknown,
  below: (name: MappingName, one: unknown) => object,
): unknown {
  if (typeof form === 'object') {
    return 'mapping' in form
      ? below(form.mapping, value)
      : (value as readonly unknown[]).map((one) => below(form.list, one));
  }
  switch (form) {
    case 'unit':
      return String(value).toUpperCase();
    case 'wrapped_count':
      return { value };
    case 'texts':
      return Array.isArray(value) ? value : [value];
    case 'families':
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
    case 'header_values':
      return Object.assign({}, ...(value as readonly object[]));
    case 'key_table':
      return { tenants: value };
    case 'phase':
      return typeof value === 'string' ? value : below('phase_schedule', value);
    case 'store_failure':
      return typeof value === 'string' ? value : below('local_share', value);
    case 'denied_response':
      return typeof value === 'string' ? { preset: value } : { custom: below('denied_response', value) };
    case 'file_only':
      throw new Error('no management server sends this');
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
