import { basename, join } from 'node:path';
import { nearest } from '../../runtime/nearest-name.js';
import { planFile } from '../read/plans/read-plans.js';
import { type OpenedSource, openPart, unopened } from '../read/policy-source.js';
import { type Position, ProblemList, WHOLE_FILE } from '../yaml/config-problem.js';
import {
  joinPath,
  parseYamlDocuments,
  type YamlMap,
  type YamlScalar,
  type YamlValue,
  yamlText,
} from '../yaml/yaml-document.js';

/** A Kubernetes resource in a file. */
export interface Manifest {
  readonly kind: string;
  /** '' if it has no name. */
  readonly name: string;
  readonly fields: YamlMap;
  /** Path in its document: '' for the whole document, `items[2]` in a list. */
  readonly path: string;
}

/** Returns the resources of documents, with lists expanded. Documents that are not resources are skipped. */
export function manifestsOf(documents: readonly YamlValue[]): readonly Manifest[] {
  return documents.flatMap((document) => manifestOf(document, ''));
}

function manifestOf(value: YamlValue, path: string): readonly Manifest[] {
  if (value.kind !== 'map') return [];
  const kind = textAt(value, 'kind');
  if (kind === '' || textAt(value, 'apiVersion') === '') return [];
  const items = value.fields.get('items')?.value;
  if (kind.endsWith('List') && items?.kind === 'list')
    return items.items.flatMap((item, i) => manifestOf(item, `items[${i}]`));
  return [{ kind, name: textAt(value, 'metadata', 'name'), fields: value, path }];
}

export function valueAt(value: YamlValue | undefined, ...path: readonly string[]): YamlValue | undefined {
  let at = value;
  for (const key of path) at = at?.kind === 'map' ? at.fields.get(key)?.value : undefined;
  return at;
}

/** '' if the path does not exist. */
export function textAt(value: YamlValue | undefined, ...path: readonly string[]): string {
  const found = valueAt(value, ...path);
  return found?.kind === 'scalar' ? found.text : '';
}

export function itemsAt(value: YamlValue | undefined, ...path: readonly string[]): readonly YamlValue[] {
  const found = valueAt(value, ...path);
  return found?.kind === 'list' ? found.items : [];
}

export function entriesAt(
  value: YamlValue | undefined,
  ...path: readonly string[]
): readonly (readonly [key: string, value: YamlValue])[] {
  const found = valueAt(value, ...path);
  return found?.kind === 'map'
    ? [...found.fields.values()].map((field) => [field.key, field.value] as const)
    : [];
}

/** A part of a file that is a policy. */
export interface OpenedPart {
  /** Unique name: the file and the path in it. */
  readonly name: string;
  readonly opened: OpenedSource;
  /** The table of `plans`, if it is another key of the ConfigMap. */
  readonly plans?: NamedPart | undefined;
}

/** A part of a file that a policy names like a file. */
export interface NamedPart {
  readonly path: string;
  /** An error if the part does not exist. */
  readonly content: Uint8Array | Error;
}

/** A cheap test that every manifest passes, because most files are policies, and large. */
const MANIFEST_HINT = /\bapiVersion["']?\s*:/;

/**
 * Returns the policies in the ConfigMaps of a file; undefined if the file is not a Kubernetes manifest. A key of `data`
 * that is not a policy is skipped with a warning. A file without any policy is an error.
 */
export function openConfigMaps(file: string, bytes: Uint8Array): readonly OpenedPart[] | undefined {
  const text = yamlText(bytes);
  // A file that is not text is reported when it is read as a policy.
  if (text === undefined || !MANIFEST_HINT.test(text)) return undefined;
  const problems = new ProblemList(file);
  const manifests = manifestsOf(parseYamlDocuments(bytes, problems));
  // An unreadable manifest is reported here. Any other file is read as a policy.
  if (manifests.length === 0 && problems.errorCount === 0) return undefined;
  const lines = text.split('\n');
  const maps = manifests.filter(({ kind }) => kind === 'ConfigMap');
  const parts = maps.flatMap((map) => openData(map, maps, lines, problems));
  if (parts.length === 0 && manifests.length > 0) {
    const kinds = [...new Set(manifests.map(({ kind }) => kind))].join(', ');
    const found =
      maps.length === 0
        ? `the file has no ConfigMap, only manifests of kind ${kinds}`
        : 'no key under "data" in the ConfigMaps of the file contains a policy';
    const remedy = manifests.some(({ kind }) => kind === 'BackendTrafficPolicy')
      ? 'a BackendTrafficPolicy is not a policy of weir; Envoy Gateway sends its rules to weir over xDS'
      : 'specify the manifest of the ConfigMap that contains the policies';
    problems.error(WHOLE_FILE, '', `${found}; ${remedy}`);
  }
  return [{ name: file, opened: unopened(problems) }, ...parts];
}

/**
 * Returns the policies in `data` of a ConfigMap, one of the `maps` of its file. Skipped keys become warnings in
 * `problems`. `lines` are those of the file that `problems` names.
 */
export function openData(
  map: Manifest,
  maps: readonly Manifest[],
  lines: readonly string[],
  problems: ProblemList,
): readonly OpenedPart[] {
  const folder = `${problems.file} ConfigMap ${fullName(map)}${placeOfRepeated(map, maps)}`;
  const keys = entriesAt(map.fields, 'data');
  const read = keys.map(([key, value]) => {
    const within = `${joinPath(map.path, 'data')}[${JSON.stringify(key)}]`;
    const opened = openKey(key, value, lines, new ProblemList(problems.file, within, folder));
    return { key, at: value.at, within, opened };
  });
  const tables = new Set(read.flatMap(({ opened }) => planFiles(opened)));
  return read.flatMap(({ key, at, within, opened }): readonly OpenedPart[] => {
    if (tables.has(join(folder, key))) return [];
    if (opened === undefined) {
      problems.warn(at, within, 'this key does not contain a policy, and is skipped');
      return [];
    }
    const [path] = planFiles(opened).filter((file) => file === join(folder, basename(file)));
    const plans = path === undefined ? undefined : { path, content: contentOf(map, basename(path)) };
    return [{ name: `${problems.file} ${within}`, opened, plans }];
  });
}

/** Opens the policy in a key; returns undefined if the key does not contain a policy. */
function openKey(
  key: string,
  value: YamlValue,
  lines: readonly string[],
  problems: ProblemList,
): OpenedSource | undefined {
  if (value.kind !== 'scalar') return undefined;
  const opened = openPart(value.text, placesIn(value, lines), problems);
  // Report unreadable text as an error if it is meant to be a policy, instead of skipping it.
  const isMeant = /\.ya?ml$/.test(key) || /^\s*(?:domain|descriptors)\s*:/m.test(value.text);
  return opened.source !== undefined || (isMeant && !opened.isNotPolicy) ? opened : undefined;
}

/**
 * Returns a function that converts positions in a scalar's text to positions in the file, which consists of `lines`.
 * If the file does not have the text line by line, as with quotes, all positions are that of the scalar.
 */
function placesIn({ text, plain, at }: YamlScalar, lines: readonly string[]): (at: Position) => Position {
  const own = text.split('\n');
  const written = (line: number): string => lines[at.line + line]?.replace(/\r$/, '') ?? '';
  const isLiteral = own.every(
    (line, i) =>
      line === '' || (written(i).endsWith(line) && written(i).slice(0, -line.length).trim() === ''),
  );
  if (!isLiteral || plain) return () => at;
  const sample = own.findIndex((line) => line !== '');
  const indent = written(sample).length - (own[sample]?.length ?? 0);
  return ({ line, column }) => (line === 0 ? at : { line: at.line + line, column: indent + column });
}

function planFiles(opened: OpenedSource | undefined): readonly string[] {
  return opened?.source === undefined ? [] : planFile(opened.source.root);
}

function fullName({ fields, name }: Manifest): string {
  const namespace = textAt(fields, 'metadata', 'namespace');
  return namespace === '' ? name : `${namespace}/${name}`;
}

/** Returns the position of a ConfigMap if an earlier one has the same name, so that their tables are distinguished. */
function placeOfRepeated(map: Manifest, maps: readonly Manifest[]): string {
  const name = fullName(map);
  const { line, column } = map.fields.at;
  return maps.find((other) => fullName(other) === name) === map ? '' : ` at ${line}:${column}`;
}

function contentOf(map: Manifest, key: string): Uint8Array | Error {
  const { fields } = map;
  const name = fullName(map);
  const text = valueAt(fields, 'data', key);
  if (text?.kind === 'scalar') return Buffer.from(text.text);
  const binary = valueAt(fields, 'binaryData', key);
  if (binary?.kind === 'scalar') {
    const digits = binary.text.replaceAll(/\s/g, '');
    if (digits.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(digits))
      return Buffer.from(digits, 'base64');
    return new Error(
      `"${key}" in "binaryData" of the ConfigMap "${name}" is not base64; encode the table, or move it to "data"`,
    );
  }
  const keys = [...entriesAt(fields, 'data'), ...entriesAt(fields, 'binaryData')].map(([one]) => one);
  const near = nearest(key, keys);
  const remedy =
    near === undefined ? 'add the table to its "data" under this key' : `did you mean "${near}"?`;
  return new Error(`the ConfigMap "${name}" has no key "${key}"; ${remedy}`);
}
