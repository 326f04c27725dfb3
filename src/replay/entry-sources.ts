/** The names of the headers and query parameters that the values of entries come from, by the keys of the entries. */
export type EntrySources = ReadonlyMap<string, ReadonlySet<string>>;

/** The key of entries, and the header or query parameter that their values come from, if there is only one. */
export interface NamedEntry {
  readonly key: string;
  readonly source?: string;
}

/** Returns the entries that `name` means: a key, or the header or query parameter of only one key. */
export function namedEntry(name: string, sources: EntrySources = new Map()): NamedEntry {
  const keys = [...sources].flatMap(([key, names]) =>
    names.has(name) || names.has(name.toLowerCase()) ? key : [],
  );
  const [first] = keys;
  const key = first === undefined || keys.length > 1 || sources.has(name) ? name : first;
  const [source, ...others] = sources.get(key) ?? [];
  return source === undefined || others.length > 0 ? { key } : { key, source };
}

/** Returns the keys of entries for a message, with their sources: `rule-0-match-0 (x-tenant)`. */
export function entryList(keys: Iterable<string>, sources: EntrySources = new Map()): string {
  return [...keys]
    .map((key) => {
      const names = [...(sources.get(key) ?? [])].filter((name) => name !== key);
      return names.length === 0 ? key : `${key} (${names.join(', ')})`;
    })
    .join(', ');
}
