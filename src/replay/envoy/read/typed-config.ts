import { FieldReader } from '../../../config/yaml/field-reader.js';

/** A google.protobuf.Any. */
export interface TypedConfig {
  /** Name of the message: `envoy.extensions.filters.http.ratelimit.v3.RateLimit`. */
  readonly type: string;
  readonly fields: FieldReader;
}

/** Reads an Any in the field `key`. A TypedStruct is unwrapped. */
export function typedConfig(reader: FieldReader, key: string): TypedConfig | undefined {
  const value = reader.field(key)?.value;
  if (value?.kind !== 'map') return undefined;
  const fields = new FieldReader(value, reader.pathOf(key), reader.problems);
  const type = typeName(fields.text('@type'));
  if (!/\.TypedStruct$/.test(type)) return { type, fields };
  const inner = fields.mapping('value');
  return inner === undefined ? undefined : { type: typeName(fields.text('type_url')), fields: inner };
}

function typeName(url: string | undefined): string {
  return url?.slice(url.lastIndexOf('/') + 1) ?? '';
}
