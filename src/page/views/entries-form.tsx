import { signal } from '@preact/signals';
import { Entries } from '../parts/texts.js';
import { policies } from '../state.js';
import { entriesOfLines, type NamedEntry } from '../text/entry-lines.js';

/** The typed entries, one `key=value` for each line. Entries are never part of a URL. */
const lines = signal('');
/**
 * Entries that lines cannot hold, such as a value with a line break. They are sent unchanged, because any other text
 * would name another caller.
 */
const fixed = signal<readonly NamedEntry[] | undefined>(undefined);

/** Shows other entries in the form. */
export function fillEntries(entries: readonly NamedEntry[]): void {
  const text = entries.map(({ key, value }) => `${key}=${value}`).join('\n');
  const isText = entries.length === 0 || JSON.stringify(entriesOfLines(text)) === JSON.stringify(entries);
  lines.value = isText ? text : '';
  fixed.value = isText ? undefined : entries;
}

/** Returns the entries of the form, or a message about what is wrong. */
export function enteredEntries(): readonly NamedEntry[] | string {
  return fixed.value ?? entriesOfLines(lines.value);
}

/** The keys of a domain's rules, as suggestions. A policy may contain ten thousand rules. */
function knownKeys(domain: string): readonly string[] {
  const known = policies.value?.domains.find((one) => domain === '' || one.domain === domain);
  const rules = (known?.policy?.rules ?? []).slice(0, 500);
  return [...new Set(rules.flatMap(({ keys }) => keys))].slice(0, 10);
}

/** The field for the entries of a descriptor of a domain. */
export function EntriesField({ domain }: { readonly domain: string }) {
  const keys = knownKeys(domain);
  if (fixed.value !== undefined)
    return (
      <div id="entries">
        <Entries entries={fixed.value} />
        <p class="note">
          An entry contains characters that a line cannot show. You cannot edit the entries. The page sends
          them unchanged.
        </p>
        <button type="button" onClick={() => fillEntries([])}>
          Enter other entries
        </button>
      </div>
    );
  return (
    <div id="entries" class="field">
      <label for="entries-lines">Entries, one key=value per line</label>
      <textarea
        id="entries-lines"
        dir="auto"
        rows={4}
        autocomplete="off"
        spellcheck={false}
        value={lines}
        onInput={({ currentTarget }) => {
          lines.value = currentTarget.value;
        }}
      />
      {keys.length > 0 && (
        <p class="note">
          Keys of this domain: <Entries entries={keys.map((key) => ({ key, value: '…' }))} />
        </p>
      )}
    </div>
  );
}
