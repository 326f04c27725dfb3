import type { FieldReader } from '../../../config/yaml/field-reader.js';
import { formatOf, parseFormatString } from '../../log/format-string.js';
import type { LogFields, LogValue, NeedOptions } from '../log-fields.js';

/** Compiles a format string, such as `%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%`. Absent values are empty. */
export function formatter(reader: FieldReader, key: string, log: LogFields, options: NeedOptions): LogValue {
  const parts = parseFormatString(reader.text(key) ?? '').map((part): LogValue => {
    if ('text' in part) return () => part.text;
    const [operator = ''] = part.operators;
    if (/^DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT$/.test(operator)) return log.remoteAddress(options);
    return log.value(part.operators, options, part.operators.length === 1 ? formatOf(operator) : undefined);
  });
  return (values) => parts.map((part) => part(values) ?? '').join('');
}
