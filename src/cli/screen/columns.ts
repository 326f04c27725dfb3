/** Characters that terminals show in no column: marks over others, and what joins or directs them. */
const NO_COLUMN = /^[\p{M}\p{Cf}]$/u;
/** Characters that take two columns (Unicode Standard Annex 11: wide and fullwidth), as far as they are common. */
const TWO_COLUMNS =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]$/u;

function columnsOfCharacter(character: string): number {
  if (character <= '\u02ff') return 1;
  if (NO_COLUMN.test(character)) return 0;
  return TWO_COLUMNS.test(character) ? 2 : 1;
}

/** How many columns of a terminal a text takes that has no codes for it. */
export function columnsOf(text: string): number {
  let columns = 0;
  for (const character of text) columns += columnsOfCharacter(character);
  return columns;
}

/** As much of a text as so many columns show, with … where something is missing. */
export function cutToColumns(text: string, most: number): string {
  if (text.length <= most / 2 || columnsOf(text) <= most) return text;
  let [shown, columns] = ['', 0];
  for (const character of text) {
    columns += columnsOfCharacter(character);
    if (columns > most - 1) break;
    shown += character;
  }
  return most < 1 ? '' : `${shown}…`;
}

/** A text filled with spaces to so many columns, behind it or before it. */
export function filled(text: string, columns: number, side: 'left' | 'right' = 'left'): string {
  const spaces = ' '.repeat(Math.max(0, columns - columnsOf(text)));
  return side === 'left' ? text + spaces : spaces + text;
}

/** A paragraph in lines of so many columns, where its words allow that. */
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

/** A column of a table: its heading, and on which side its cells stand. */
export interface Column {
  readonly heading: string;
  readonly side: 'left' | 'right';
  /** Whether the column may be left out when the headings do not all fit. The last such column goes first. */
  readonly yields?: true;
}

/**
 * Rows as lines under a heading; each column as wide as its widest cell, two spaces between them. `most`: the columns
 * of the screen; no heading is cut there, though the cells of the last column may be.
 */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  most = Number.POSITIVE_INFINITY,
): readonly string[] {
  const headings = columns.map(({ heading }) => heading);
  const widths = columns.map((_, at) =>
    Math.max(...[headings, ...rows].map((cells) => columnsOf(cells[at] ?? ''))),
  );
  const shown = shownColumns(columns, widths, most);
  return [headings, ...rows].map((cells) =>
    shown
      .map((at) => filled(cells[at] ?? '', widths[at] ?? 0, columns[at]?.side))
      .join('  ')
      .trimEnd(),
  );
}

/** The positions of the columns whose headings have room. */
function shownColumns(
  columns: readonly Column[],
  widths: readonly number[],
  most: number,
): readonly number[] {
  let shown = columns.map((_, at) => at);
  for (;;) {
    const last = shown.at(-1) ?? 0;
    const before = shown.slice(0, -1).reduce((sum, at) => sum + (widths[at] ?? 0) + 2, 0);
    const { heading = '', side = 'left' } = columns[last] ?? {};
    const isFitting = before + (side === 'left' ? columnsOf(heading) : (widths[last] ?? 0)) <= most;
    const yielding = shown.findLast((at) => columns[at]?.yields === true);
    if (isFitting || yielding === undefined) return shown;
    shown = shown.filter((at) => at !== yielding);
  }
}
