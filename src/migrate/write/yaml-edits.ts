import { valueAt } from '../../config/manifests/manifest.js';
import type { Position } from '../../config/yaml/config-problem.js';
import type { YamlList, YamlMap, YamlScalar, YamlValue } from '../../config/yaml/yaml-document.js';
import type { YamlPath } from '../read/workload.js';

/*
 * Changes of a YAML text that leave everything else in it as it is written, comments included. Each gives the new
 * lines, or undefined where the text is written in a way that it cannot change; callers read the result again to see
 * that it says what was meant.
 */

type Lines = readonly string[];

/** What is put in: a text, a mapping or a list. */
export type NewValue = string | NewMap | readonly NewValue[];
export interface NewMap {
  readonly [key: string]: NewValue;
}

/** Puts another text in the place of the one at `path`, or adds it where nothing is. */
export function setText(lines: Lines, root: YamlMap, path: YamlPath, text: string): Lines | undefined {
  const value = valueAt(root, ...path);
  if (value === undefined) return addAt(lines, root, path, text);
  return value.kind === 'scalar' ? replaceText(lines, value, text) : undefined;
}

/** Adds fields to the mapping at `path`, before those that are there; makes the mapping where nothing is. */
export function addFields(lines: Lines, root: YamlMap, path: YamlPath, fields: NewMap): Lines | undefined {
  const value = valueAt(root, ...path);
  if (value === undefined) return addAt(lines, root, path, fields);
  return value.kind === 'map' ? addToMap(lines, value, fields) : undefined;
}

/** Adds items to the list at `path`, before those that are there; makes the list where nothing is. */
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

/** Makes comments of the lines of the field at `path`. */
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

/** Adds what is at the end of a path, and whatever of the path is not there. */
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

/** Puts texts behind an opening bracket. */
function insertInFlow(lines: Lines, { line, column }: Position, added: Lines, isFollowed: boolean): Lines {
  const isSpaced = lines[line - 1]?.[column] === ' ';
  const end = isFollowed ? (isSpaced ? ',' : ', ') : '';
  return insert(lines, { line, column: column + 1 }, added.join(', ') + end);
}

/** Puts lines before what begins at a place, at its indentation. */
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

/** As JSON, which YAML takes anywhere. */
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

/** Without quotes where no reader of YAML takes the text for anything but a text. */
function plain(text: string): string {
  return /^[A-Za-z/][\w./@=-]*(?::[\w./@=-]+)*$/.test(text) &&
    !/^(?:true|false|yes|no|on|off|null|y|n)$/i.test(text)
    ? text
    : JSON.stringify(text);
}
