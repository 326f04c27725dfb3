import { FieldReader, kindName } from '../config/read/field-reader.js';
import { type ConfigProblem, ProblemList, WHOLE_FILE } from '../config/yaml/config-problem.js';
import { parseYaml, type YamlValue } from '../config/yaml/yaml-document.js';
import { MAX_FILE_BYTES } from '../config/yaml/yaml-value.js';
import { messageOf, readRegularFile } from '../runtime/regular-file.js';
import { DURATION_UNITS } from './times.js';

/** Where a value of a line is: a member of its JSON object, or members of nested objects. */
export interface MemberPath {
  /** As in the map: `headers.x-tenant`. A member with this whole name comes first. */
  readonly text: string;
  /** The members that lead to the value if no member has the whole name. */
  readonly steps: readonly string[];
}

/** An entry of a descriptor. The value of a line comes first, then {@link or}. */
export interface MappedEntry {
  readonly key: string;
  readonly from: MemberPath | undefined;
  /** The value without {@link from}, or if a line has none. Undefined: Envoy does not send the descriptor then. */
  readonly or: string | undefined;
}

/** Hits of a call: a fixed number, or a number in the line. */
export type MappedHits = number | MemberPath;

/** A call that Envoy sends for a request. */
export interface MappedCall {
  readonly descriptors: readonly (readonly MappedEntry[])[];
  /** Undefined: Envoy sends no number, which is 1 hit for a start, and an unknown use for the end of a hold. */
  readonly hits: MappedHits | undefined;
}

/** Says what the members of a log's lines are, and which descriptors Envoy sends for a request. */
export interface LogMap {
  readonly file: string;
  readonly domain: string;
  readonly domainAt: { readonly line: number; readonly column: number };
  readonly time: MemberPath;
  readonly method: MemberPath | undefined;
  readonly status: MemberPath | undefined;
  readonly flags: MemberPath | undefined;
  readonly details: MemberPath | undefined;
  readonly duration: MemberPath | undefined;
  /** Unit of durations that are plain numbers, in microseconds; undefined if the map does not say it. */
  readonly durationUnitMicros: number | undefined;
  readonly start: MappedCall;
  /** The call at the end of a request (`apply_on_stream_done`), and the use that it reports. */
  readonly end: MappedCall | undefined;
}

const PATHS = ['time', 'method', 'status', 'flags', 'details', 'duration'] as const;
const MAP_KEYS = ['domain', ...PATHS, 'duration_unit', 'hits', 'descriptors', 'at_end'];
const ENTRY_KEYS = ['key', 'value', 'from', 'or'];
const DESCRIPTORS =
  'descriptors, each of which is a list of entries: [{ key: tenant, from: headers.x-tenant }]';

/** Reads a map. Returns its errors if it is invalid. */
export function readReplayMap(file: string): LogMap | readonly ConfigProblem[] {
  const problems = new ProblemList(file);
  const root = openMap(file, problems);
  if (root === undefined) return problems.errors;
  root.expectKeys(MAP_KEYS);
  const paths = Object.fromEntries(PATHS.map((key) => [key, readPath(root, key)]));
  const { time, ...optional } = paths as Record<(typeof PATHS)[number], MemberPath | undefined>;
  const domain = root.text('domain') ?? '';
  if (domain === '')
    root.error('domain', '"domain" is missing; write the domain that Envoy sends, as in domain: shop');
  if (time === undefined && !root.isBad('time'))
    root.error(
      'time',
      '"time" is missing; write the member with the start of the request, as in time: start_time',
    );
  const unit = root.choice('duration_unit', ['us', 'ms', 's']);
  if (unit !== undefined && optional.duration === undefined)
    root.error(
      'duration_unit',
      '"duration_unit" needs "duration"; write the member with the duration, or remove the unit',
    );
  const start = readCall(root);
  if (start.descriptors.length === 0 && root.field('descriptors') === undefined)
    root.error('descriptors', `"descriptors" is missing; write ${DESCRIPTORS}`);
  const end = readEnd(root, optional.duration !== undefined);
  problems.sort();
  if (problems.errors.length > 0 || time === undefined) return problems.errors;
  const durationUnitMicros = unit && DURATION_UNITS[unit];
  return { file, domain, domainAt: root.at('domain'), time, ...optional, durationUnitMicros, start, end };
}

function openMap(file: string, problems: ProblemList): FieldReader | undefined {
  let bytes: Buffer;
  try {
    bytes = readRegularFile(file, MAX_FILE_BYTES);
  } catch (error) {
    problems.error(WHOLE_FILE, '', messageOf(error, file));
    return undefined;
  }
  const document = parseYaml(bytes, problems);
  if (document === undefined || document.kind === 'map')
    return document && new FieldReader(document, '', problems);
  const message = `a map must be a mapping, not a ${kindName(document)}; begin it with "domain: <name>"`;
  problems.error(document.at, '', message);
  return undefined;
}

function readPath(reader: FieldReader, key: string): MemberPath | undefined {
  const text = reader.text(key);
  if (text === undefined) return undefined;
  if (text !== '' && !text.includes('%')) return memberPath(text);
  if (text !== '')
    reader.error(
      key,
      `"${text}" is an operator of Envoy's log format; write the name of the member that it sets`,
    );
  else reader.error(key, `"${key}" is empty; write the name of a member of the log's lines`);
  return undefined;
}

function memberPath(text: string): MemberPath {
  return { text, steps: text.split('.') };
}

/** Reads the call at the end of requests, which needs the time at which they end. */
function readEnd(root: FieldReader, hasDuration: boolean): MappedCall | undefined {
  const reader = root.mapping('at_end', 'write "descriptors" and "hits" below it');
  if (reader === undefined) return undefined;
  reader.expectKeys(['hits', 'descriptors']);
  if (!hasDuration)
    root.error('at_end', '"at_end" needs "duration"; write the member with the duration of the request');
  return readCall(reader);
}

function readCall(reader: FieldReader): MappedCall {
  const descriptors = reader.list('descriptors', DESCRIPTORS)?.items ?? [];
  const path = reader.pathOf('descriptors');
  return {
    hits: readHits(reader),
    descriptors: descriptors.map((item, at) => readDescriptor(item, `${path}[${at}]`, reader.problems)),
  };
}

function readHits(reader: FieldReader): MappedHits | undefined {
  const value = reader.field('hits')?.value;
  if (value?.kind !== 'map')
    return reader.scalar('hits', { kind: 'count', min: 0, max: Number.MAX_SAFE_INTEGER });
  const inner = reader.mapping('hits') as FieldReader;
  inner.expectKeys(['from']);
  if (inner.field('from') === undefined)
    reader.error('hits', '"hits" needs a number, or the member with it, as in hits: { from: tokens }');
  return readPath(inner, 'from');
}

function readDescriptor(item: YamlValue, path: string, problems: ProblemList): readonly MappedEntry[] {
  if (item.kind !== 'list' || item.items.length === 0) {
    const found = item.kind === 'list' ? 'an empty list' : `a ${kindName(item)}`;
    problems.error(
      item.at,
      path,
      `a descriptor must be a list of entries, not ${found}; write [{ key: …, from: … }]`,
    );
    return [];
  }
  return item.items.flatMap((entry, at) => {
    const entryPath = `${path}[${at}]`;
    if (entry.kind === 'map') return readEntry(new FieldReader(entry, entryPath, problems)) ?? [];
    problems.error(
      entry.at,
      entryPath,
      `an entry must be a mapping, not a ${kindName(entry)}; write { key: …, from: … }`,
    );
    return [];
  });
}

function readEntry(reader: FieldReader): MappedEntry | undefined {
  reader.expectKeys(ENTRY_KEYS);
  const key = reader.text('key') ?? '';
  if (key === '') reader.error('key', '"key" is missing; write the key of the entry that Envoy sends');
  const from = readPath(reader, 'from');
  const value = reader.text('value');
  const or = reader.text('or');
  if ((reader.field('from') === undefined) === (reader.field('value') === undefined))
    reader.error('key', 'an entry needs either "from" (a member of the log) or "value" (a fixed text)');
  if (or !== undefined && value !== undefined)
    reader.error('or', '"or" cannot be combined with "value"; it is the value if "from" has none');
  return { key, from, or: value ?? or };
}

/**
 * Returns the text of a member: a text, a number or a boolean. Returns undefined if the line has none; `-` is what
 * Envoy writes for a missing value.
 */
export function textAt(line: JsonLine, path: MemberPath): string | undefined {
  const value = valueAt(line, path);
  if (typeof value === 'string') return value === '-' ? undefined : value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;
}

/** The object of a line. */
export type JsonLine = Readonly<Record<string, unknown>>;

export function valueAt(line: JsonLine, { text, steps }: MemberPath): unknown {
  const direct = line[text];
  if (direct !== undefined || steps.length === 1) return direct ?? undefined;
  let value: unknown = line;
  for (let at = 0; at < steps.length; at++) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as JsonLine)[steps[at] as string];
  }
  return value ?? undefined;
}
