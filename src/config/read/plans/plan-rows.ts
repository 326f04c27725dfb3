import { type Position, type ProblemList, WHOLE_FILE } from '../../yaml/config-problem.js';
import { isNull, parseYaml, type YamlValue } from '../../yaml/yaml-document.js';
import { isNullText } from '../../yaml/yaml-scalar.js';
import { readCsv } from './csv-rows.js';
import { isRedisAddress } from './read-plans.js';
import { addFields, type RowSink } from './row-sink.js';

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

/** Returns the position of the quote that ends a string. */
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
