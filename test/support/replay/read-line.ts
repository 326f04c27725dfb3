import type { Operator } from '../../../src/replay/log/format-string.js';
import { bytesOf } from '../../../src/replay/log/lines/byte-text.js';
import { LineFields } from '../../../src/replay/log/lines/line-fields.js';
import { lineReader } from '../../../src/replay/log/lines/line-reader.js';
import type { LineValues, LogFormat } from '../../../src/replay/log/log-format.js';

/** Returns a function that reads the values of `operators` from a line, or returns why the line cannot be read. */
export function lineValues(
  format: LogFormat,
  operators: readonly Operator[],
): (line: string) => LineValues | string {
  const read = lineReader(format, operators);
  const fields = new LineFields(operators.length);
  return (text) => {
    const line = bytesOf(text);
    return read(line, fields) ?? operators.map((_, column) => fields.text(column, line));
  };
}
