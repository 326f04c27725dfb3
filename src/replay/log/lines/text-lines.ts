import type { FormatPart, Operator } from '../format-string.js';
import { bytesOf } from './byte-text.js';
import type { LineReader } from './line-fields.js';

/** Returns a reader of lines of text. A value ends where the next text of the format begins. */
export function textLineReader(parts: readonly FormatPart[], operators: readonly Operator[]): LineReader {
  const texts = parts.map((part) => ('text' in part ? bytesOf(part.text) : undefined));
  /** For each part with operators, the columns of its value. */
  const columns = parts.map((part) =>
    'operators' in part ? operators.flatMap((one, i) => (part.operators.includes(one) ? i : [])) : [],
  );
  return (line, fields) => {
    fields.clear();
    let at = 0;
    for (let i = 0; i < texts.length; i++) {
      const text = texts[i];
      if (text !== undefined) {
        if (!line.startsWith(text, at)) return 'other_format';
        at += text.length;
        continue;
      }
      const next = texts[i + 1];
      const end = next === undefined ? line.length : line.indexOf(next, at);
      if (end < 0) return 'other_format';
      for (const column of columns[i] as readonly number[]) fields.set(column, line, at, end);
      at = end;
    }
    return at === line.length ? undefined : 'other_format';
  };
}
