import type { Operator } from '../format-string.js';
import type { JsonMember } from '../log-format.js';
import { bytesOf, utf8Of } from './byte-text.js';
import { ABSENT, type LineFault, type LineFields, type LineReader } from './line-fields.js';

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const SPACE = 0x20;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/** A wanted member. */
interface Target {
  readonly column: number;
  readonly path: readonly string[];
  /** `"name"`, with one character for each byte. */
  readonly key: string;
  /** Position of the key in the latest line. */
  at: number;
}

/**
 * Returns a reader of JSON lines. It searches the members in a line without nested objects and escapes, which Envoy
 * writes for nearly all requests, and parses other lines as a whole. If a member occurs twice, only the parser returns
 * the last one.
 */
export function jsonLineReader(members: readonly JsonMember[], operators: readonly Operator[]): LineReader {
  const targets = operators.flatMap((operator, column): Target[] => {
    const path = memberFor(members, operator)?.path;
    // Without nested objects, a dot in the path is a dot in the name.
    return path === undefined ? [] : [{ column, path, key: bytesOf(JSON.stringify(path.join('.'))), at: 0 }];
  });
  const absent = operators.flatMap((_, column) =>
    targets.some((one) => one.column === column) ? [] : column,
  );
  return (line, fields) => {
    for (const column of absent) fields.from[column] = ABSENT;
    return searchMembers(line, targets, fields) ? undefined : parseMembers(line, targets, fields);
  };
}

/** Returns the member with the value of an operator, preferably one that never has the value of another. */
function memberFor(members: readonly JsonMember[], operator: Operator): JsonMember | undefined {
  const found = members.filter((member) => member.operators.includes(operator));
  return found.find((member) => member.operators.length === 1) ?? found[0];
}

/** Searches members in a line. Returns false if only a parser can tell. */
function searchMembers(line: string, targets: Target[], fields: LineFields): boolean {
  if (line.charCodeAt(0) !== OPEN || line.charCodeAt(line.length - 1) !== CLOSE) return false;
  if (line.indexOf('\\') >= 0 || line.indexOf('{', 1) >= 0) return false;
  let isOrdered = true;
  let at = 1;
  for (const target of targets) {
    const { key, column } = target;
    let found = line.indexOf(key, at);
    if (found < 0 && at > 1) {
      found = line.indexOf(key, 1);
      isOrdered = found < 0;
    }
    target.at = found;
    if (found < 0) {
      fields.from[column] = ABSENT;
      continue;
    }
    // A value may be equal to the name, so the parser decides if no colon follows.
    const after = found + key.length;
    if (line.charCodeAt(after) !== COLON) return false;
    const end = searchValue(
      line,
      line.charCodeAt(after + 1) === SPACE ? after + 2 : after + 1,
      column,
      fields,
    );
    if (end < 0) return false;
    at = end;
  }
  // Proxies write all lines in the same order, so the next search begins where the previous one ended.
  if (!isOrdered) targets.sort((a, b) => a.at - b.at);
  return true;
}

/** Reads the value at `from`. Returns the position after it, or -1 if only a parser can tell. */
function searchValue(line: string, from: number, column: number, fields: LineFields): number {
  const first = line.charCodeAt(from);
  let end: number;
  if (first === QUOTE) {
    const close = line.indexOf('"', from + 1);
    if (close < 0) return -1;
    fields.set(column, line, from + 1, close);
    end = close + 1;
  } else if (first === MINUS || (first >= ZERO && first <= NINE)) {
    end = numberEnd(line, from);
    if (end < 0) return -1;
    fields.set(column, line, from, end);
  } else if (line.startsWith('null', from)) {
    fields.from[column] = ABSENT;
    fields.occurs(column);
    end = from + 4;
  } else return -1;
  const next = line.charCodeAt(end);
  return next === COMMA || next === CLOSE || next === SPACE ? end : -1;
}

/** Returns the end of a number that a parser would print as it is written; -1 for other numbers. */
function numberEnd(line: string, from: number): number {
  let at = line.charCodeAt(from) === MINUS ? from + 1 : from;
  const start = at;
  let dots = 0;
  let code = line.charCodeAt(at);
  while ((code >= ZERO && code <= NINE) || (code === DOT && at > start && dots++ === 0))
    code = line.charCodeAt(++at);
  const digits = at - start;
  const last = line.charCodeAt(at - 1);
  if (digits === 0 || digits > 16 || (dots > 0 && (last === ZERO || last === DOT))) return -1;
  const leadsWithZero = line.charCodeAt(start) === ZERO;
  if (leadsWithZero && (dots > 0 || digits > 1 || start > from)) return -1;
  return at;
}

function parseMembers(line: string, targets: readonly Target[], fields: LineFields): LineFault | undefined {
  const parsed = parseObject(line);
  if (typeof parsed === 'string') return parsed;
  for (const { column, path } of targets) {
    const value = memberOf(parsed, path);
    if (value !== undefined) fields.occurs(column);
    fields.setText(column, textOf(value));
  }
  return undefined;
}

/** Parses a line with one character for each byte. */
export function parseObject(line: string): Readonly<Record<string, unknown>> | 'not_json' | 'not_an_object' {
  let parsed: unknown;
  try {
    parsed = JSON.parse(utf8Of(line));
  } catch {
    return 'not_json';
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return 'not_an_object';
  return parsed as Readonly<Record<string, unknown>>;
}

function memberOf(object: Readonly<Record<string, unknown>>, path: readonly string[]): unknown {
  const value = nested(object, path);
  return value === undefined && path.length > 1 ? nested(object, [path.join('.')]) : value;
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;
}

function nested(object: Readonly<Record<string, unknown>>, path: readonly string[]): unknown {
  let value: unknown = object;
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value;
}
