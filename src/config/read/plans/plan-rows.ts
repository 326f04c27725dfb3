import { isRedisAddress } from '../../sources/plan-address.js';
import { type Position, type ProblemList, WHOLE_FILE } from '../../yaml/config-problem.js';
import { isNull, parseYaml, type YamlValue } from '../../yaml/yaml-document.js';
import { readCsv } from './csv-rows.js';
import { readHash, readJsonArray, readJsonLines } from './json-rows.js';
import { addFields, type RowSink } from './row-sink.js';

/** Maximum size of a file with rows, in bytes. */
export const MAX_PLAN_BYTES = 128 * 1024 * 1024;

/** The formats of tables, by the end of their file's name or the scheme of their address. */
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
