import { nearest } from '../../../runtime/nearest-name.js';
import { safePrefix } from '../../../runtime/shown-address.js';
import { plural } from '../../../runtime/texts.js';
import { type Position, type ProblemList, WHOLE_FILE } from '../../yaml/config-problem.js';
import { isNull, parseYaml, type YamlValue } from '../../yaml/yaml-document.js';
import { isNullText } from '../../yaml/yaml-value.js';
import { type Cells, nearColumn } from './plan-columns.js';
import { isRedisAddress } from './read-plans.js';

/** Maximum size of a file with rows, in bytes. */
export const MAX_PLAN_BYTES = 128 * 1024 * 1024;

/** The formats of tables, by the extension of the file or the scheme of the address. */
const READERS: readonly (readonly [RegExp, (text: string, sink: RowSink, problems: ProblemList) => void])[] =
  [
    [/^rediss?:/i, readHash],
    [/\.[ct]sv$/i, readCsv],
    [/\.(?:jsonl|ndjson)$/i, readJsonLines],
    [/\.json$/i, readJson],
  ];

/** Reads the rows of a table. Adds problems of the whole table to `problems`. */
export function readPlanRows(file: string, bytes: Uint8Array, sink: RowSink, problems: ProblemList): void {
  if (/\.ya?ml$/i.test(file) && !isRedisAddress(file)) {
    readYamlRows(bytes, sink, problems);
    return;
  }
  const [, read] = READERS.find(([name]) => name.test(file)) ?? [];
  if (read === undefined) {
    problems.error(
      WHOLE_FILE,
      '',
      'the format of the file is unknown; give it a name that ends in .csv, .jsonl, .yaml or .json',
    );
    return;
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    problems.error(WHOLE_FILE, '', 'the file is not UTF-8 text; save it as UTF-8');
    return;
  }
  read(text, sink, problems);
}

function readJson(text: string, sink: RowSink, problems: ProblemList): void {
  if (text.trimStart().startsWith('[')) readJsonArray(text, sink, problems);
  else readYamlRows(Buffer.from(text), sink, problems);
}

/** Reads a mapping from the key of each row to the name of its plan, or to a mapping of its values. */
function readYamlRows(bytes: Uint8Array, sink: RowSink, problems: ProblemList): void {
  const document = parseYaml(bytes, problems, { showKey: () => false });
  if (document === undefined || problems.errors.length > 0) return;
  if (document.kind !== 'map') {
    problems.error(document.at, '', 'the file must be a mapping; write <customer>: <plan> on each line');
    return;
  }
  for (const { key, keyAt, value } of document.fields.values()) {
    const { line } = keyAt;
    if (value.kind === 'list') {
      sink.refuse(key, value.at, '', 'the row must be the name of a plan, or a mapping of values');
    } else if (value.kind === 'scalar') {
      addFields(key, { plan: scalarOf(value) }, sink, line, () => value.at);
    } else {
      const fields = [...value.fields.values()];
      const places = new Map(fields.map((field) => [field.key, field.value.at]));
      const placeOf = (cell: number): Position => places.get(sink.cells[cell] ?? '') ?? keyAt;
      const named = fields.map((field) => [field.key, scalarOf(field.value)] as const);
      addFields(key, Object.fromEntries(named), sink, line, placeOf);
    }
  }
}

/** Returns the text of a value, or null. */
function scalarOf(value: YamlValue): unknown {
  if (isNull(value)) return null;
  return value.kind === 'scalar' ? value.text : value;
}

/** Reads one JSON object per line. */
function readJsonLines(text: string, sink: RowSink): void {
  for (const [line, record] of linesOf(text)) readObject(record, { line, column: 1 }, sink);
}

/** Reads a JSON array of objects. */
function readJsonArray(text: string, sink: RowSink, problems: ProblemList): void {
  const end = forEachElement(text, (element, at) => readObject(element, at, sink));
  if (end === undefined) {
    problems.error(WHOLE_FILE, '', 'the list does not end; write the whole file, up to the last "]"');
  } else if (text.slice(end).trim() !== '') {
    problems.error(
      WHOLE_FILE,
      '',
      'text follows the list; write one list, or one object on each line of a .jsonl file',
    );
  }
}

/** Reads the fields of a hash, as RedisRows writes them: a customer, and the name of a plan or a JSON object. */
function readHash(text: string, sink: RowSink): void {
  for (const [line, record] of linesOf(text)) {
    const at = { line, column: 1 };
    const [key, value] = (parsed(record) ?? []) as readonly (string | undefined)[];
    if (key === undefined || value === undefined) sink.refuse(key, at, '', 'the stored row is damaged');
    else if (value.startsWith('{')) readObject(value, at, sink, key);
    else addFields(key, { plan: isNullText(value) ? null : value }, sink, line, () => at);
  }
}

/** Yields the lines that are not empty, with their numbers. */
function* linesOf(text: string): Generator<readonly [line: number, record: string]> {
  let line = 0;
  for (let start = 0; start < text.length; ) {
    const found = text.indexOf('\n', start);
    const end = found < 0 ? text.length : found;
    const record = text.slice(start, end).trim();
    start = end + 1;
    line++;
    if (record !== '') yield [line, record];
  }
}

/**
 * Calls `visit` with each element of a JSON list, without parsing the elements. Returns the position after the list, or
 * undefined if the list does not end.
 */
function forEachElement(text: string, visit: (element: string, at: Position) => void): number | undefined {
  let depth = 0;
  let line = 1;
  let lineStart = 0;
  /** The start of the current element, and its position; -1 before it. */
  let start = -1;
  let at: Position = { line, column: 1 };
  for (let i = 0; i < text.length; i++) {
    const char = text[i] as string;
    if (char === '\n') {
      line++;
      lineStart = i + 1;
    }
    if (char === ' ' || char === '\n' || char === '\r' || char === '\t') continue;
    if (depth === 1 && start < 0) {
      start = i;
      at = { line, column: i - lineStart + 1 };
    }
    if (depth === 1 && (char === ',' || char === ']')) {
      const element = text.slice(start, i).trim();
      // A list may be empty.
      if (element !== '' || char === ',') visit(element, at);
      start = -1;
    }
    if (char === '"') i = endOfString(text, i);
    else if (char === '[' || char === '{') depth++;
    else if (char === ']' || char === '}') depth--;
    // Any other bracket would end the list before its last row.
    if (depth === 0) return char === ']' ? i + 1 : undefined;
  }
  return undefined;
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '"') return at;
    if (text[at] === '\\') at++;
  }
  return text.length;
}

/**
 * Reads a JSON object. If `customer` is undefined, the member with the name of the key column contains the customer.
 */
function readObject(record: string, at: Position, sink: RowSink, customer?: string): void {
  const value = parsed(record);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    sink.refuse(customer, at, '', 'the row is not a JSON object; write an object for each customer');
    return;
  }
  const object = value as Readonly<Record<string, unknown>>;
  const key = customer ?? object[sink.by];
  if (typeof key === 'number' && !Number.isSafeInteger(key)) {
    // JSON.parse has rounded the number, possibly to the number of another customer.
    sink.refuse(undefined, at, sink.by, 'the customer is not a whole number below 2^53; write it in quotes');
    return;
  }
  const name = typeof key === 'string' || typeof key === 'number' ? String(key) : '';
  if (repeatsName(record, object)) {
    sink.refuse(name, at, '', 'the row has two values with the same name; remove one of them');
    return;
  }
  addFields(name, object, sink, at.line, () => at);
}

/** Returns the value of a JSON text; undefined if the text is not valid JSON. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/**
 * Returns whether the text of an object contains more members than the object. Always returns false for nested objects.
 */
function repeatsName(json: string, object: Readonly<Record<string, unknown>>): boolean {
  const names = Object.keys(object);
  let colons = 0;
  for (let at = json.indexOf(':'); at >= 0; at = json.indexOf(':', at + 1)) colons++;
  if (colons === names.length) return false;
  if (names.some((name) => typeof object[name] === 'object' && object[name] !== null)) return false;
  // Some colons are in strings. A name is a string that is followed by a colon outside of strings.
  const strings = [...json.matchAll(/"(?:[^"\\]|\\.)*"\s*(:?)/g)];
  return strings.filter(([, colon]) => colon === ':').length > names.length;
}

/** Receives the rows of a table. */
export interface RowSink {
  /** Key of the entry whose value selects the row. The column with the customers has the same name. */
  readonly by: string;
  /** Names of the cells of a row. */
  readonly cells: readonly string[];
  /** The columns to read (`columns` of `plans`); undefined if all columns must be known. */
  readonly readColumns: readonly string[] | undefined;
  /**
   * Returns the index of the cell that a column fills; undefined for an unknown column. The column {@link by} fills no
   * cell.
   */
  cellOf(column: string): number | 'ignored' | undefined;
  /**
   * Adds a row.
   *
   * @param placeOf returns the position of a cell, or of the row for -1
   */
  add(key: string, cells: Cells, line: number, placeOf: (cell: number) => Position): void;
  /** Refuses a row that cannot be read; its key may be unknown. */
  refuse(key: string | undefined, at: Position, path: string, message: string): void;
}

/** Returns the message for a column that no limit uses. `what` is the name of the column in the message. */
function unknownColumn(column: string, what: string, known: readonly string[]): string {
  const near = nearColumn(column, known);
  const stop = near.endsWith('?') ? '' : '.';
  return `no limit uses ${what}; ${near}${stop} To ignore other columns, list those to read as "columns" of "plans"`;
}

/**
 * Adds a row of named values: texts, other scalars of JSON, and null for an absent value.
 *
 * @param placeOf see {@link RowSink.add}
 */
function addFields(
  key: string,
  fields: Readonly<Record<string, unknown>>,
  sink: RowSink,
  line: number,
  placeOf: (cell: number) => Position,
): void {
  const cells = new Array<string | undefined>(sink.cells.length).fill(undefined);
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    const cell = sink.cellOf(name);
    if (cell === 'ignored') continue;
    if (cell === undefined) {
      sink.refuse(key, placeOf(-1), '', unknownColumn(name, `the value "${safePrefix(name)}"`, sink.cells));
      return;
    }
    if (value === null) continue;
    if (typeof value === 'object') {
      sink.refuse(key, placeOf(cell), name, `"${name}" must be a single value`);
      return;
    }
    cells[cell] = String(value);
  }
  sink.add(key, cells, line, placeOf);
}

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
function readCsv(text: string, sink: RowSink, problems: ProblemList): void {
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
      const has = `the row has ${plural(row.length, 'column')}, but the first line has ${names.length}`;
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
    const shown = safePrefix(name);
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
