import type { YamlMap, YamlValue } from '../yaml/yaml-document.js';

/** A resource of Kubernetes, as a file writes it. */
export interface Manifest {
  readonly kind: string;
  /** '' where it has none. */
  readonly name: string;
  readonly fields: YamlMap;
  /** Where it stands in its document: '' for the whole, `items[2]` in a list. */
  readonly path: string;
}

/** The resources of documents, those of lists one by one; documents that are none are left out. */
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

/** What stands at the end of a path of keys and 0-based places; undefined where the path leads nowhere. */
export function valueAt(
  value: YamlValue | undefined,
  ...path: readonly (string | number)[]
): YamlValue | undefined {
  let at = value;
  for (const step of path) {
    if (typeof step === 'number') at = at?.kind === 'list' ? at.items[step] : undefined;
    else at = at?.kind === 'map' ? at.fields.get(step)?.value : undefined;
  }
  return at;
}

/** The text there; '' where none stands. */
export function textAt(value: YamlValue | undefined, ...path: readonly (string | number)[]): string {
  const found = valueAt(value, ...path);
  return found?.kind === 'scalar' ? found.text : '';
}

/** The items of a list there; none where there is no list. */
export function itemsAt(
  value: YamlValue | undefined,
  ...path: readonly (string | number)[]
): readonly YamlValue[] {
  const found = valueAt(value, ...path);
  return found?.kind === 'list' ? found.items : [];
}

/** The fields of a mapping there, as pairs; none where there is no mapping. */
export function entriesAt(
  value: YamlValue | undefined,
  ...path: readonly (string | number)[]
): readonly (readonly [key: string, value: YamlValue])[] {
  const found = valueAt(value, ...path);
  return found?.kind === 'map'
    ? [...found.fields.values()].map((field) => [field.key, field.value] as const)
    : [];
}
