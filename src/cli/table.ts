import { shellText } from '../runtime/printable.js';
import { listSome } from '../runtime/texts.js';
import { CommandError, EXIT } from './io.js';

/** Characters of width 0 in terminals: combining marks and format characters. */
const ZERO_WIDTH = /^[\p{M}\p{Cf}]$/u;
/** Common characters of width 2 in terminals (Unicode Standard Annex 11: wide and fullwidth). */
const DOUBLE_WIDTH =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]$/u;

function columnsOfCharacter(character: string): number {
  if (character <= '\u02ff') return 1;
  if (ZERO_WIDTH.test(character)) return 0;
  return DOUBLE_WIDTH.test(character) ? 2 : 1;
}

/** The width of a string in terminal columns. The string must not contain control sequences. */
export function columnsOf(text: string): number {
  let columns = 0;
  for (const character of text) columns += columnsOfCharacter(character);
  return columns;
}

/** Pads a string with spaces to `columns` columns, on the right for `left` alignment and on the left for `right`. */
export function padded(text: string, columns: number, side: 'left' | 'right' = 'left'): string {
  const spaces = ' '.repeat(Math.max(0, columns - columnsOf(text)));
  return side === 'left' ? text + spaces : spaces + text;
}

/** Wraps a paragraph into lines of at most `columns` columns. Longer words are not split. */
export function wrapped(paragraph: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of paragraph.split(' ')) {
    if (line !== '' && columnsOf(line) + 1 + columnsOf(word) > columns) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}

/** Heading of a table column, and alignment of its cells. */
export interface Column {
  readonly heading: string;
  readonly side: 'left' | 'right';
}

/** Formats rows under a heading. Each column is as wide as its widest cell, with two spaces between columns. */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  const widths = columns.map(({ heading }, at) =>
    Math.max(columnsOf(heading), ...rows.map((cells) => columnsOf(cells[at] ?? ''))),
  );
  return [columns.map(({ heading }) => heading), ...rows].map((cells) =>
    cells
      .map((cell, at) => padded(cell, widths[at] ?? 0, columns[at]?.side))
      .join('  ')
      .trimEnd(),
  );
}

/** Placeholder for a secret, written by policy/redact.ts. */
const REDACTED = /^\[redacted sha256:[\da-f]{8}\]$/;

/** Formats entries as command-line arguments, quoted where a shell needs it. Long values are cut. */
export function entriesText(entries: readonly { readonly key: string; readonly value: string }[]): string {
  return entries
    .map(({ key, value }) => `${shellText(key)}=${REDACTED.test(value) ? value : shellText(value)}`)
    .join(' ');
}

/** Maximum number of domains in a message. */
const MAX_NAMED = 10;

/** Returns the error of a command without `--domain` if the server or the policy has several domains. */
export function severalDomains(owner: 'server' | 'policy', names: readonly string[]): CommandError {
  const named = listSome(names, MAX_NAMED, shellText);
  return new CommandError(
    EXIT.USAGE,
    `the ${owner} has several domains; specify one with --domain: ${named}`,
  );
}
