import type { YamlField, YamlValue } from '../../../config/yaml/yaml-document.js';

/** Fields whose keys are names that the user chose. */
const USER_KEYS = new Set(['filter_metadata', 'json_format', 'typed_json_format', 'typed_per_filter_config']);
const CAMEL_CASE = /^[a-z]+(?:[A-Z][a-z0-9]*)+$/;

/**
 * Returns a protobuf message with the field names of the .proto file. Envoy also reads the names of protobuf's JSON
 * format: `rateLimits` for `rate_limits`.
 */
export function withProtoNames(value: YamlValue): YamlValue {
  if (value.kind === 'scalar') return value;
  if (value.kind === 'list') return { ...value, items: value.items.map(withProtoNames) };
  const fields = [...value.fields.values()].map((field): [string, YamlField] => {
    const key = CAMEL_CASE.test(field.key)
      ? field.key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
      : field.key;
    return [
      key,
      { ...field, key, value: USER_KEYS.has(key) ? userKeys(field.value) : withProtoNames(field.value) },
    ];
  });
  return { ...value, fields: new Map(fields) };
}

/** Keeps the keys of a mapping. Messages in the mapping get the names of the .proto file. */
function userKeys(value: YamlValue): YamlValue {
  if (value.kind !== 'map') return value;
  const fields = [...value.fields].map(([key, field]): [string, YamlField] => {
    const isMessage = field.value.kind === 'map' && field.value.fields.has('@type');
    return [key, isMessage ? { ...field, value: withProtoNames(field.value) } : field];
  });
  return { ...value, fields: new Map(fields) };
}
