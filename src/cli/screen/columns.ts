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

/** Returns the width of a string in terminal columns. The string must not contain control sequences. */
export function columnsOf(text: string): number {
  let columns = 0;
  for (const character of text) columns += columnsOfCharacter(character);
  return columns;
}

/** Cuts a string to at most `maxColumns` columns, and keeps its `kept` part; `…` replaces the omitted part. */
export function cutToColumns(text: string, maxColumns: number, kept: 'start' | 'end' = 'start'): string {
  if (text.length <= maxColumns / 2 || columnsOf(text) <= maxColumns) return text;
  let [shown, columns] = ['', 0];
  for (const character of kept === 'start' ? text : [...text].reverse()) {
    columns += columnsOfCharacter(character);
    if (columns > maxColumns - 1) break;
    shown = kept === 'start' ? shown + character : character + shown;
  }
  if (maxColumns < 1) return '';
  return kept === 'start' ? `${shown}…` : `…${shown}`;
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
  /** Whether the column may be omitted if not all headings fit. The last such column is omitted first. */
  readonly yields?: true;
}

/**
 * Formats rows under a heading. Each column is as wide as its widest cell, with two spaces between columns. With
 * `maxColumns`, the width of the screen, headings are never cut, but cells of the last column may be.
 */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  maxColumns = Number.POSITIVE_INFINITY,
): readonly string[] {
  const widths = columnWidths(columns, rows);
  return alignedLines(columns, rows, widths, shownColumns(columns, widths, maxColumns));
}

function columnWidths(columns: readonly Column[], rows: readonly (readonly string[])[]): readonly number[] {
  return columns.map(({ heading }, at) =>
    Math.max(columnsOf(heading), ...rows.map((cells) => columnsOf(cells[at] ?? ''))),
  );
}

/** Returns the columns with the indexes `shown`, under their headings. */
function alignedLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  widths: readonly number[],
  shown: readonly number[],
): readonly string[] {
  return [columns.map(({ heading }) => heading), ...rows].map((cells) =>
    shown
      .map((at) => padded(cells[at] ?? '', widths[at] ?? 0, columns[at]?.side))
      .join('  ')
      .trimEnd(),
  );
}

/** Returns the indexes of the columns whose headings fit. */
function shownColumns(
  columns: readonly Column[],
  widths: readonly number[],
  maxColumns: number,
): readonly number[] {
  let shown = columns.map((_, at) => at);
  for (;;) {
    const last = shown.at(-1) ?? 0;
    const before = shown.slice(0, -1).reduce((sum, at) => sum + (widths[at] ?? 0) + 2, 0);
    const { heading = '', side = 'left' } = columns[last] ?? {};
    const isFitting = before + (side === 'left' ? columnsOf(heading) : (widths[last] ?? 0)) <= maxColumns;
    const yielding = shown.findLast((at) => columns[at]?.yields === true);
    if (isFitting || yielding === undefined) return shown;
    shown = shown.filter((at) => at !== yielding);
  }
}
