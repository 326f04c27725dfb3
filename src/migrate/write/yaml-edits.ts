import { valueAt } from '../../config/manifests/manifest.js';
import type { Position } from '../../config/yaml/config-problem.js';
import type { YamlList, YamlMap, YamlScalar, YamlValue } from '../../config/yaml/yaml-document.js';
import type { YamlPath } from '../read/workload.js';

/*
 * Edits of a YAML text that keep everything else, including comments. Each function returns the new lines, or undefined
 * if it cannot edit the syntax of the text. Callers parse the result again to verify it.
 */

type Lines = readonly string[];

/** A value to insert: a string, a mapping or a list. */
export type NewValue = string | NewMap | readonly NewValue[];
export interface NewMap {
  readonly [key: string]: NewValue;
}

/** Replaces the text at `path`, or adds it if the path does not exist. */
export function setText(lines: Lines, root: YamlMap, path: YamlPath, text: string): Lines | undefined {
  const value = valueAt(root, ...path);
  if (value === undefined) return addAt(lines, root, path, text);
  return value.kind === 'scalar' ? replaceText(lines, value, text) : undefined;
}

/** Adds fields to the mapping at `path`, before the existing fields. Creates the mapping if it does not exist. */
export function addFields(lines: Lines, root: YamlMap, path: YamlPath, fields: NewMap): Lines | undefined {
  const value = valueAt(root, ...path);
  if (value === undefined) return addAt(lines, root, path, fields);
  return value.kind === 'map' ? addToMap(lines, value, fields) : undefined;
}

/** Adds items to the list at `path`, before the existing items. Creates the list if it does not exist. */
export function addItems(
  lines: Lines,
  root: YamlMap,
  path: YamlPath,
  items: readonly NewValue[],
): Lines | undefined {
  const value = valueAt(root, ...path);
  if (value === undefined) return addAt(lines, root, path, items);
  return value.kind === 'list' ? addToList(lines, value, items) : undefined;
}

/** Comments out the lines of the field at `path`. */
export function commentOut(lines: Lines, root: YamlMap, path: YamlPath): Lines | undefined {
  const parent = valueAt(root, ...path.slice(0, -1));
  const field = parent?.kind === 'map' ? parent.fields.get(String(path.at(-1))) : undefined;
  if (field === undefined) return lines;
  const { line, column } = field.keyAt;
  const indent = column - 1;
  const first = lines[line - 1] ?? '';
  if (first.slice(0, indent).trim() !== '') return undefined;
  const isInside = (text: string): boolean =>
    text.trim() !== '' &&
    (text.search(/\S/) > indent ||
      (field.value.kind === 'list' && text.search(/\S/) === indent && text.trim().startsWith('-')));
  let last = line;
  for (let i = line; i < lines.length; i++) {
    const text = lines[i] ?? '';
    if (text.trim() !== '' && !isInside(text)) break;
    if (isInside(text)) last = i + 1;
  }
  const commented = lines
    .slice(line - 1, last)
    .map((text) => (text.trim() === '' ? text : `${text.slice(0, indent)}# ${text.slice(indent)}`));
  return [...lines.slice(0, line - 1), ...commented, ...lines.slice(last)];
}

/** Adds the value at `path`, and the missing mappings above it. */
function addAt(lines: Lines, root: YamlMap, path: YamlPath, value: NewValue): Lines | undefined {
  for (let length = path.length - 1; length >= 0; length--) {
    const above = valueAt(root, ...path.slice(0, length));
    if (above === undefined) continue;
    if (above.kind !== 'map') return undefined;
    const missing = path.slice(length + 1).reduceRight<NewValue>((inner, key) => ({ [key]: inner }), value);
    return addToMap(lines, above, { [String(path[length])]: missing });
  }
  return undefined;
}

function addToMap(lines: Lines, map: YamlMap, fields: NewMap): Lines | undefined {
  if (beginsWith(lines, map, '{')) {
    const added = Object.entries(fields).map(([key, value]) => `${JSON.stringify(key)}: ${flow(value)}`);
    return insertInFlow(lines, map.at, added, map.fields.size > 0);
  }
  const [first] = map.fields.values();
  const isBlock = first?.keyAt.line === map.at.line && first.keyAt.column === map.at.column;
  return isBlock ? insertBlock(lines, map.at, fieldLines(fields)) : undefined;
}

function addToList(lines: Lines, list: YamlList, items: readonly NewValue[]): Lines | undefined {
  if (beginsWith(lines, list, '['))
    return insertInFlow(lines, list.at, items.map(flow), list.items.length > 0);
  return beginsWith(lines, list, '-') ? insertBlock(lines, list.at, itemLines(items)) : undefined;
}

/** Inserts strings after an opening bracket. */
function insertInFlow(lines: Lines, { line, column }: Position, added: Lines, isFollowed: boolean): Lines {
  const isSpaced = lines[line - 1]?.[column] === ' ';
  const end = isFollowed ? (isSpaced ? ',' : ', ') : '';
  return insert(lines, { line, column: column + 1 }, added.join(', ') + end);
}

/** Inserts lines before the node at a position, with its indentation. */
function insertBlock(lines: Lines, at: Position, added: Lines): Lines {
  const indent = ' '.repeat(at.column - 1);
  return insert(lines, at, added.map((line) => `${line}\n${indent}`).join(''));
}

function insert(lines: Lines, { line, column }: Position, text: string): Lines {
  const old = lines[line - 1] ?? '';
  return splice(lines, line, old.slice(0, column - 1) + text + old.slice(column - 1));
}

function splice(lines: Lines, line: number, text: string): Lines {
  return [...lines.slice(0, line - 1), ...text.split('\n'), ...lines.slice(line)];
}

function replaceText(lines: Lines, { at, text: old }: YamlScalar, text: string): Lines | undefined {
  const line = lines[at.line - 1] ?? '';
  const before = line.slice(0, at.column - 1);
  const written = line.slice(at.column - 1);
  const quoted = /^(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')/.exec(written)?.[0];
  if (quoted !== undefined)
    return splice(lines, at.line, before + JSON.stringify(text) + written.slice(quoted.length));
  if (old === '' || !written.startsWith(old)) return undefined;
  return splice(lines, at.line, before + plain(text) + written.slice(old.length));
}

function beginsWith(lines: Lines, { at }: YamlValue, sign: string): boolean {
  return lines[at.line - 1]?.[at.column - 1] === sign;
}

/** Returns the value as JSON, which is valid in any YAML context. */
function flow(value: NewValue): string {
  return JSON.stringify(value);
}

function fieldLines(fields: NewMap): Lines {
  return Object.entries(fields).flatMap(([key, value]) => {
    if (typeof value === 'string') return [`${key}: ${plain(value)}`];
    const below = isList(value) ? itemLines(value) : fieldLines(value);
    return [`${key}:`, ...below.map((line) => `  ${line}`)];
  });
}

function itemLines(items: readonly NewValue[]): Lines {
  return items.flatMap((item) => {
    if (typeof item === 'string') return [`- ${plain(item)}`];
    return (isList(item) ? itemLines(item) : fieldLines(item)).map((line, i) =>
      i === 0 ? `- ${line}` : `  ${line}`,
    );
  });
}

function isList(value: NewMap | readonly NewValue[]): value is readonly NewValue[] {
  return Array.isArray(value);
}

/** Returns the text without quotes if every YAML parser reads it as a string, else as JSON. */
function plain(text: string): string {
  return /^[A-Za-z/][\w./@=-]*(?::[\w./@=-]+)*$/.test(text) &&
    !/^(?:true|false|yes|no|on|off|null|y|n)$/i.test(text)
    ? text
    : JSON.stringify(text);
}
