import { nearest } from '../../../runtime/nearest-name.js';
import { shownStart } from '../../../runtime/shown-address.js';
import { quantity } from '../../../runtime/texts.js';
import { type ProblemList, WHOLE_FILE } from '../../yaml/config-problem.js';
import { isNullText } from '../../yaml/yaml-scalar.js';
import { type RowSink, unknownColumn } from './row-sink.js';

/**
 * The separators of columns, each with its name in messages. The first of these that occurs in the first line is used.
 */
const SEPARATORS = [
  [',', 'commas'],
  [';', 'semicolons'],
  ['\t', 'tabs'],
] as const;

const BAD_QUOTES =
  'a quote is not closed on this line, or text follows it; close the quotes, and write "" for a quote in a cell';

/**
 * Reads rows in the format of RFC 4180, also with other separators. The first line contains the names of the columns.
 */
export function readCsv(text: string, sink: RowSink, problems: ProblemList): void {
  const records = new CsvRecords(text);
  const names = records.next()?.map((name) => name.trim());
  if (names === undefined) {
    const example = `${sink.by},plan`;
    problems.error(
      WHOLE_FILE,
      '',
      `the file is empty; begin it with the names of the columns, such as ${example}`,
    );
    return;
  }
  const cellOf = names.map((name) => (name === sink.by ? 'key' : sink.cellOf(name)));
  checkHeader(names, cellOf, records, sink, problems);
  if (problems.errors.length > 0) return;
  records.canSpanLines = cellOf.map((cell) => cell === 'ignored');
  const keyColumn = cellOf.indexOf('key');
  for (let row = records.next(); row !== undefined; row = records.next()) {
    const current = row;
    const { line } = records;
    const key = (row[keyColumn] ?? '').trim();
    const refuse = (message: string): void => sink.refuse(key || undefined, { line, column: 1 }, '', message);
    if (records.isBroken) refuse(BAD_QUOTES);
    // Spreadsheet programs also save empty rows.
    else if (key === '' && row.every((cell) => cell.trim() === '')) continue;
    else if (row.length !== names.length) {
      const has = `the row has ${quantity(row.length, 'column')}, but the first line has ${names.length}`;
      refuse(`${has}; correct the ${records.separatorName}`);
    } else {
      const cells = new Array<string | undefined>(sink.cells.length).fill(undefined);
      for (let i = 0; i < row.length; i++) {
        const cell = cellOf[i];
        if (typeof cell !== 'number') continue;
        const written = (row[i] as string).trim();
        const isAbsent = written === '' || (isNullText(written) && !records.quoted.has(i));
        if (!isAbsent) cells[cell] = written;
      }
      sink.add(key, cells, line, (cell) => ({
        line,
        column: columnOf(current, cell < 0 ? keyColumn : cellOf.indexOf(cell)),
      }));
    }
  }
}

/** How a column is used: as the customer, as a cell of the row, or not at all; undefined for an unknown column. */
type Column = 'key' | ReturnType<RowSink['cellOf']>;

function checkHeader(
  names: readonly string[],
  cellOf: readonly Column[],
  { line, isBroken }: CsvRecords,
  sink: RowSink,
  problems: ProblemList,
): void {
  const at = (i: number): { readonly line: number; readonly column: number } => ({
    line,
    column: columnOf(names, i),
  });
  const known = [sink.by, ...sink.cells];
  if (isBroken) problems.error(at(0), '', BAD_QUOTES);
  names.forEach((name, i) => {
    const shown = shownStart(name);
    if (cellOf[i] === undefined) {
      // If a name resembles no column, the first line may be missing, and the name may be a customer.
      const isNear = nearest(name, known) !== undefined;
      const what = isNear ? `the column "${shown}"` : `column ${i + 1} of the first line`;
      problems.error(at(i), '', unknownColumn(name, what, known));
    } else if (cellOf[i] !== 'ignored' && names.indexOf(name) !== i) {
      problems.error(at(i), '', `two columns are named "${shown}"; remove one`);
    }
  });
  if (problems.errors.length > 0) return;
  for (const name of new Set([sink.by, ...(sink.readColumns ?? [])])) {
    // If the policy lists an unknown column, this is an error in the policy.
    if (names.includes(name) || !known.includes(name)) continue;
    const remedy = name === sink.by ? '' : ', or remove it from "plans.columns"';
    problems.error(at(0), '', `the column "${name}" is missing; add it to the first line${remedy}`);
  }
}

/** Returns the position of a cell in its line, provided that no earlier cell is quoted. */
function columnOf(cells: readonly string[], index: number): number {
  return cells.slice(0, Math.max(0, index)).reduce((sum, cell) => sum + cell.length + 1, 1);
}

/** The records of a CSV file. Skips blank lines, and comments that begin with `#`. */
class CsvRecords {
  /** The line on which the last record begins. */
  line = 0;
  /** Whether the last record contains invalid quotes, so that later cells are missing. */
  isBroken = false;
  /** Indexes of the quoted cells in the last record. */
  readonly quoted = new Set<number>();
  /**
   * The columns whose cells may contain line breaks. Other columns may not, so that a missing quote invalidates one row
   * instead of all rows up to the next quote.
   */
  canSpanLines: readonly boolean[] = [];
  readonly separatorName: string;
  readonly #separator: string;
  readonly #text: string;
  #at = 0;
  #nextLine = 1;

  constructor(text: string) {
    this.#text = text;
    const header = /^(?!\s*$|#).*/m.exec(text)?.[0] ?? '';
    const bare = header.replaceAll(/"[^"]*"/g, '');
    const found = SEPARATORS.find(([separator]) => bare.includes(separator));
    [this.#separator, this.separatorName] = found ?? SEPARATORS[0];
  }

  /** Returns the cells of the next record; undefined at the end. */
  next(): readonly string[] | undefined {
    const text = this.#text;
    this.isBroken = false;
    this.quoted.clear();
    while (this.#at < text.length) {
      const start = this.#at;
      const end = this.#endOfLine(start);
      this.line = this.#nextLine++;
      this.#at = end + 1;
      const record = text.slice(start, text[end - 1] === '\r' ? end - 1 : end);
      if (record.trim() === '' || record.startsWith('#')) continue;
      return record.includes('"') ? this.#quotedRecord(start) : record.split(this.#separator);
    }
    return undefined;
  }

  /** Reads a record that contains quotes. If the quotes are invalid, the next record begins on the next line. */
  #quotedRecord(start: number): readonly string[] {
    const text = this.#text;
    const cells: string[] = [];
    for (let at = start; ; at++) {
      const cell = this.#quotedCell(at, cells.length) ?? this.#plainCell(at);
      if (cell === undefined) break;
      cells.push(cell.text);
      at = cell.end;
      if (text[at] === this.#separator) continue;
      if (text[at] === '\r' && text[at + 1] === '\n') at++;
      if (at < text.length && text[at] !== '\n') break;
      // Some cells may span several lines.
      for (let end = text.indexOf('\n', start); end >= 0 && end < at; end = text.indexOf('\n', end + 1)) {
        this.#nextLine++;
      }
      this.#at = at + 1;
      return cells;
    }
    this.isBroken = true;
    return cells;
  }

  /** Reads a quoted cell, with or without spaces around it; undefined for other cells and for invalid quotes. */
  #quotedCell(at: number, index: number): Cell | undefined {
    const text = this.#text;
    let start = at;
    while (text[start] === ' ') start++;
    if (text[start] !== '"') return undefined;
    let close = text.indexOf('"', start + 1);
    while (close >= 0 && text[close + 1] === '"') close = text.indexOf('"', close + 2);
    const inner = text.slice(start + 1, close);
    if (close < 0) return undefined;
    if (inner.includes('\n') && (this.canSpanLines[index] !== true || this.#hasRow(inner, index)))
      return undefined;
    this.quoted.add(index);
    let end = close + 1;
    while (text[end] === ' ') end++;
    return { text: inner.replaceAll('""', '"'), end };
  }

  /**
   * Returns whether the quoted text seems to contain other rows, because a quote is probably missing. This is the case
   * if one of its lines has as many cells as a row, or if the next cell after its last line would be in the same
   * column.
   */
  #hasRow(inner: string, index: number): boolean {
    const [, ...lines] = inner.split('\n').map((line) => line.split(this.#separator).length);
    const last = lines.pop();
    return lines.includes(this.canSpanLines.length) || (index > 0 && last === index + 1);
  }

  /** Reads a cell without quotes; undefined if the cell contains quotes. */
  #plainCell(at: number): Cell | undefined {
    let end = this.#endOfLine(at);
    if (this.#text[end - 1] === '\r') end--;
    const separator = this.#text.indexOf(this.#separator, at);
    if (separator >= 0) end = Math.min(end, separator);
    const text = this.#text.slice(at, end);
    return text.includes('"') ? undefined : { text, end };
  }

  #endOfLine(from: number): number {
    const end = this.#text.indexOf('\n', from);
    return end < 0 ? this.#text.length : end;
  }
}

interface Cell {
  readonly text: string;
  /** The position after the cell. */
  readonly end: number;
}
