import { quantity } from '../../../quantity.js';
import { shownStart } from '../../../runtime/shown-address.js';
import { isRedisAddress } from '../../sources/plan-address.js';
import { type Position, type ProblemList, WHOLE_FILE } from '../../yaml/config-problem.js';
import { parseYaml } from '../../yaml/yaml-document.js';
import { nearColumn } from './plan-columns.js';

/** Maximum size of a file with rows, in bytes. */
export const MAX_PLAN_BYTES = 128 * 1024 * 1024;

/** Maximum number of rows. */
export const MAX_PLAN_ROWS = 2_000_000;

/** Receives the rows of a file. */
export interface RowSink {
  /** Key of the entry whose value selects the row; the name of its column. */
  readonly by: string;
  /** Names of the other columns that a file may have. */
  readonly cells: readonly string[];
  /**
   * Adds a row. `cells` has one text for each name in {@link cells}, as written, and undefined for those that the row
   * does not have.
   *
   * @param placeOf returns the position of a cell, or of the row for -1
   */
  add(
    key: string,
    cells: readonly (string | undefined)[],
    line: number,
    placeOf: (cell: number) => Position,
  ): void;
  /** Refuses a row that cannot be read; its key may be unknown. */
  refuse(key: string | undefined, at: Position, path: string, message: string): void;
}

/** Names of files and addresses, and what reads them. */
const READERS: readonly (readonly [RegExp, (text: string, sink: RowSink, problems: ProblemList) => void])[] =
  [
    [/^rediss?:/i, readHash],
    [/\.csv$/, readCsv],
    [/\.(?:jsonl|ndjson)$/, readJsonLines],
  ];

/** Reads the rows of a file. Adds problems of the whole file to `problems`. */
export function readPlanRows(file: string, bytes: Uint8Array, sink: RowSink, problems: ProblemList): void {
  if (/\.(?:ya?ml|json)$/.test(file) && !isRedisAddress(file)) {
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

/** Reads comma-separated values as in RFC 4180. The first line names the columns. */
function readCsv(text: string, sink: RowSink, problems: ProblemList): void {
  const lines = new CsvLines(text);
  const header = lines.next();
  if (header === undefined) {
    problems.error(
      WHOLE_FILE,
      '',
      `the file is empty; begin it with the names of the columns, such as ${sink.by},plan`,
    );
    return;
  }
  const headerLine = lines.line;
  const names = header.map((name) => name.trim());
  const keyColumn = names.indexOf(sink.by);
  const cellOf = names.map((name) => (name === sink.by ? -1 : sink.cells.indexOf(name)));
  names.forEach((name, i) => {
    const at = { line: headerLine, column: columnOf(header, i) };
    if (names.indexOf(name) !== i)
      problems.error(at, '', `two columns are named "${shownStart(name)}"; remove one`);
    else if (i !== keyColumn && cellOf[i] === -1) {
      const shown = shownStart(name);
      const hint =
        names.length === 1 && /[;\t]/.test(name)
          ? 'separate the columns by commas'
          : nearColumn(name, [sink.by, ...sink.cells]);
      // A name that resembles no column may be a customer, in a file without its first line.
      const what = hint.startsWith('did you mean')
        ? `the column "${shown}"`
        : `column ${i + 1} of the first line`;
      problems.error(at, '', `no limit uses ${what}; ${hint}`);
    }
  });
  if (keyColumn < 0 && problems.errors.length === 0) {
    problems.error(
      { line: headerLine, column: 1 },
      '',
      `the column "${sink.by}" is missing; add it to the first line`,
    );
  }
  if (problems.errors.length > 0) return;
  for (let row = lines.next(); row !== undefined; row = lines.next()) {
    const { line } = lines;
    const current = row;
    if (lines.isBroken) {
      const message =
        'a quote is not closed on this line, or text follows it; close the quotes, and write "" for a quote in a cell';
      sink.refuse(row[keyColumn]?.trim(), { line, column: 1 }, '', message);
      continue;
    }
    if (row.length !== names.length) {
      const message =
        `the row has ${quantity(row.length, 'column')}, but the first line names ${names.length}; ` +
        'correct the commas';
      sink.refuse(row[keyColumn]?.trim(), { line, column: 1 }, '', message);
      continue;
    }
    const cells = new Array<string | undefined>(sink.cells.length).fill(undefined);
    row.forEach((text, i) => {
      const cell = cellOf[i] as number;
      if (cell >= 0) cells[cell] = text.trim();
    });
    sink.add((row[keyColumn] as string).trim(), cells, line, (cell) => ({
      line,
      column: columnOf(current, cell < 0 ? keyColumn : cellOf.indexOf(cell)),
    }));
  }
}

/** Returns the column of a cell in its line, if no earlier cell has quotes. */
function columnOf(cells: readonly string[], index: number): number {
  return cells.slice(0, Math.max(0, index)).reduce((sum, cell) => sum + cell.length + 1, 1);
}

/** The records of a CSV file, one on each line. Lines without text, and comments that begin with `#`, are skipped. */
class CsvLines {
  /** Line of the last record. */
  line = 0;
  /** Whether quotes in the last record are wrong, so that later cells are missing. */
  isBroken = false;
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Returns the cells of the next record; undefined at the end. */
  next(): readonly string[] | undefined {
    const text = this.#text;
    while (this.#at < text.length) {
      const end = endOf(text, this.#at);
      const record = text.slice(this.#at, text[end - 1] === '\r' ? end - 1 : end);
      this.#at = end + 1;
      this.line++;
      if (record.trim() === '' || record.startsWith('#')) continue;
      this.isBroken = false;
      return record.includes('"') ? this.#quoted(record) : record.split(',');
    }
    return undefined;
  }

  /** Reads a record with quotes, which may contain commas. */
  #quoted(record: string): readonly string[] {
    const cells: string[] = [];
    const cell = /(?: *"([^"]*(?:""[^"]*)*)" *|([^",]*))(?:,|$)/y;
    while (cell.lastIndex <= record.length) {
      const found = cell.exec(record);
      this.isBroken = found === null;
      if (found === null) return cells;
      const [whole, quoted, plain = ''] = found;
      cells.push(quoted?.replaceAll('""', '"') ?? plain);
      if (!whole.endsWith(',')) break;
    }
    return cells;
  }
}

function endOf(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end < 0 ? text.length : end;
}

/** Reads the fields of a hash, as RedisRows writes them: a customer, and the name of a plan or a JSON object. */
function readHash(text: string, sink: RowSink): void {
  for (const [line, record] of recordsOf(text)) {
    const at = { line, column: 1 };
    const [key, value] = (parsed(record) ?? []) as readonly (string | undefined)[];
    if (key === undefined || value === undefined) sink.refuse(key, at, '', 'the stored row is damaged');
    else if (value.startsWith('{')) readObject(value, at, sink, key);
    else addFields(key, [['plan', value]], sink, { line, placeOf: () => at });
  }
}

/** Reads one JSON object per line. */
function readJsonLines(text: string, sink: RowSink): void {
  for (const [line, record] of recordsOf(text)) readObject(record, { line, column: 1 }, sink);
}

/** Yields the lines that are not empty, with their numbers. */
function* recordsOf(text: string): Generator<readonly [line: number, record: string]> {
  let line = 0;
  for (let start = 0; start < text.length; ) {
    const end = endOf(text, start);
    const record = text.slice(start, end).trim();
    start = end + 1;
    line++;
    if (record === '') continue;
    yield [line, record];
  }
}

/** Reads a JSON object. Its customer is `customer`, or else the member with the name of the key column. */
function readObject(record: string, at: Position, sink: RowSink, customer?: string): void {
  const value = parsed(record);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    sink.refuse(customer, at, '', 'the line is not a JSON object; write one object on each line');
    return;
  }
  const object = value as Readonly<Record<string, unknown>>;
  const { [sink.by]: key, ...fields } = customer === undefined ? object : { ...object, [sink.by]: customer };
  if (typeof key === 'number' && !Number.isSafeInteger(key)) {
    // JSON.parse has rounded it, perhaps to the number of another customer.
    sink.refuse(undefined, at, sink.by, 'the customer is not a whole number below 2^53; write it in quotes');
    return;
  }
  const name = typeof key === 'string' || typeof key === 'number' ? String(key) : '';
  if (memberCount(record) > Object.keys(value).length && !Object.values(value).some(isObject)) {
    sink.refuse(name, at, '', 'the line has two values with the same name; remove one of them');
    return;
  }
  addFields(name, Object.entries(fields), sink, { line: at.line, placeOf: () => at });
}

/** Returns the value of a JSON text; undefined if it is none. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

/** Returns the number of names in a valid JSON text: the strings in front of a colon. */
function memberCount(json: string): number {
  let count = 0;
  for (const [, colon] of json.matchAll(/"(?:[^"\\]|\\.)*"\s*(:?)/g)) if (colon === ':') count++;
  return count;
}

/** Reads a mapping of the key of each row to the name of its plan, or to a mapping of its values. */
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
      addFields(key, [['plan', value.text]], sink, { line, placeOf: () => value.at });
    } else {
      const places = new Map([...value.fields.values()].map((field) => [field.key, field.value.at]));
      const fields = [...value.fields.values()].map(({ key: name, value: cell }) => {
        return [name, cell.kind === 'scalar' ? cell.text : cell] as const;
      });
      const placeOf = (cell: number): Position => places.get(sink.cells[cell] ?? '') ?? keyAt;
      addFields(key, fields, sink, { line, placeOf });
    }
  }
}

/** Adds a row of named values. */
function addFields(
  key: string,
  fields: readonly (readonly [string, unknown])[],
  sink: RowSink,
  { line, placeOf }: { readonly line: number; readonly placeOf: (cell: number) => Position },
): void {
  const cells = new Array<string | undefined>(sink.cells.length).fill(undefined);
  for (const [name, value] of fields) {
    const cell = sink.cells.indexOf(name);
    if (cell < 0) {
      const shown = shownStart(name);
      sink.refuse(
        key,
        placeOf(-1),
        '',
        `no limit uses the value "${shown}"; ${nearColumn(name, sink.cells)}`,
      );
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
