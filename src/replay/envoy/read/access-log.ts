import type { FieldReader } from '../../../config/yaml/field-reader.js';
import type { YamlValue } from '../../../config/yaml/yaml-document.js';
import type { Operator } from '../../log/format-string.js';
import { type JsonFormatNode, jsonMembers } from '../../log/json-format.js';
import {
  DECIDED_AT,
  type JsonMember,
  jsonFormat,
  type LogFormat,
  REQUEST_ID,
  START_TIME,
  textFormat,
} from '../../log/log-format.js';
import { typedConfig } from './typed-config.js';

/** Access loggers that write lines. */
const LINE_LOGGER = /\.access_loggers\.(?:file\.v3\.FileAccessLog|stream\.v3\.Std(?:out|err)AccessLog)$/;

/** Reads `access_log` of a message. Logs with the default format are omitted. */
export function readAccessLogs(reader: FieldReader): readonly LogFormat[] {
  return reader.mappings('access_log', 'access logs', 'name').flatMap((log) => {
    const config = typedConfig(log, 'typed_config');
    if (config === undefined || !LINE_LOGGER.test(config.type)) return [];
    return logFormat(config.fields.mapping('log_format') ?? config.fields) ?? [];
  });
}

/**
 * Reads envoy.config.core.v3.SubstitutionFormatString, the deprecated fields of FileAccessLog, or `log` of a mapping.
 */
export function logFormat(
  reader: FieldReader,
  title = `the format at ${reader.problems.file}:${reader.map.at.line}`,
): LogFormat | undefined {
  const json = reader.field('json_format')?.value ?? reader.field('typed_json_format')?.value;
  if (json !== undefined) return jsonFormat(title, jsonMembers(formatNode(json)));
  const log = reader.mapping('log');
  if (log !== undefined) return jsonFormat(title, mappedMembers(log));
  const source = reader.mapping('text_format_source');
  if (source !== undefined && !source.has('inline_string'))
    source.warn('', 'the replay reads a text format only from "inline_string"');
  const text = source?.text('inline_string') ?? reader.text('text_format') ?? reader.text('format');
  return text === undefined ? undefined : textFormat(title, text);
}

/** The keys of `log` in a mapping. Other keys are names of request headers. */
export const MEANINGS: ReadonlyMap<string, Operator> = new Map([
  ['time', START_TIME],
  ['decided_at', DECIDED_AT],
  ['method', 'REQ(:method)'],
  ['path', 'REQ(:path)'],
  ['host', 'REQ(:authority)'],
  ['status', 'RESPONSE_CODE'],
  ['duration', 'DURATION'],
  ['bytes_received', 'BYTES_RECEIVED'],
  ['bytes_sent', 'BYTES_SENT'],
  ['remote_address', 'DOWNSTREAM_REMOTE_ADDRESS'],
  ['route_name', 'ROUTE_NAME'],
  ['request_id', REQUEST_ID],
]);

/** Reads `log`: names of members by meaning, request header, or operator such as `DYNAMIC_METADATA(a:b)`. */
function mappedMembers(log: FieldReader): readonly JsonMember[] {
  return [...log.map.fields.keys()].flatMap((key) => {
    const name = log.text(key);
    if (name === undefined) return [];
    const operator = MEANINGS.get(key) ?? (/^[A-Z]/.test(key) ? key : `REQ(${key.toLowerCase()})`);
    return [{ path: name.split('.'), operators: [operator] }];
  });
}

/** Returns a format as plain data. Lists are omitted. */
export function formatNode(value: YamlValue): JsonFormatNode {
  if (value.kind === 'scalar') return value.text;
  if (value.kind === 'list') return {};
  return Object.fromEntries([...value.fields.values()].map((field) => [field.key, formatNode(field.value)]));
}
