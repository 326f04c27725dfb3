import type { YamlMap, YamlValue } from '../yaml/yaml-document.js';

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

/** Returns the value at a path of keys; undefined if the path does not exist. */
export function valueAt(value: YamlValue | undefined, ...path: readonly string[]): YamlValue | undefined {
  let at = value;
  for (const key of path) at = at?.kind === 'map' ? at.fields.get(key)?.value : undefined;
  return at;
}

/** Returns the text at a path, or ''. */
export function textAt(value: YamlValue | undefined, ...path: readonly string[]): string {
  const found = valueAt(value, ...path);
  return found?.kind === 'scalar' ? found.text : '';
}

/** Returns the items of the list at a path, or none. */
export function itemsAt(value: YamlValue | undefined, ...path: readonly string[]): readonly YamlValue[] {
  const found = valueAt(value, ...path);
  return found?.kind === 'list' ? found.items : [];
}

/** Returns the fields of the mapping at a path as pairs, or none. */
export function entriesAt(
  value: YamlValue | undefined,
  ...path: readonly string[]
): readonly (readonly [key: string, value: YamlValue])[] {
  const found = valueAt(value, ...path);
  return found?.kind === 'map'
    ? [...found.fields.values()].map((field) => [field.key, field.value] as const)
    : [];
}
