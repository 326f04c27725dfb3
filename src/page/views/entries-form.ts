import { button, byId, el, freshId, spoken } from '../dom/element.js';
import { entriesOfLines, type NamedEntry } from '../text/entry-lines.js';

interface EntryRow {
  readonly element: HTMLElement;
  readonly key: HTMLInputElement;
  readonly value: HTMLInputElement;
}

/** The entries of a descriptor, to be typed or pasted. They stay in the page: no address holds them. */
export class EntriesForm {
  readonly #list = byId('entries');
  readonly #lines = byId('entries-lines') as HTMLTextAreaElement;
  readonly #wrong = byId('entries-wrong');
  readonly #rows: EntryRow[] = [];

  constructor() {
    byId('entries-add').addEventListener('click', () => this.#add({ key: '', value: '' }).key.focus());
    byId('entries-paste').addEventListener('click', () => this.#paste());
    this.#add({ key: '', value: '' });
  }

  /** What is typed, without rows of which nothing is; a sentence where a key is missing. */
  read(): readonly NamedEntry[] | string {
    const entries = this.#rows
      .map(({ key, value }) => ({ key: key.value, value: value.value }))
      .filter(({ key, value }) => key !== '' || value !== '');
    if (entries.length === 0) return 'Name at least one entry, such as customer and acme.';
    return entries.some(({ key }) => key === '') ? 'An entry has a value and no key.' : entries;
  }

  /** Shows other entries. */
  fill(entries: readonly NamedEntry[]): void {
    for (const { element } of this.#rows.splice(0)) element.remove();
    for (const entry of entries.length === 0 ? [{ key: '', value: '' }] : entries) this.#add(entry);
  }

  /** Offers keys of the policy. */
  offer(keys: readonly string[]): void {
    byId('known-keys').replaceChildren(...keys.map((key) => el('option', { value: key })));
  }

  #add({ key, value }: NamedEntry): EntryRow {
    const [keyId, valueId] = [freshId(), freshId()];
    const plain = { autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', type: 'text' };
    const keyInput = el('input', { id: keyId, list: 'known-keys', ...plain });
    const valueInput = el('input', { id: valueId, dir: 'auto', ...plain });
    keyInput.value = key;
    valueInput.value = value;
    const remove = button('Remove', () => this.#remove(row), { class: 'quiet' });
    remove.append(spoken(' this entry'));
    const element = el(
      'li',
      { class: 'entry-row' },
      el('span', { class: 'field' }, el('label', { for: keyId }, 'Key'), keyInput),
      el('span', { class: 'field grow' }, el('label', { for: valueId }, 'Value'), valueInput),
      remove,
    );
    const row = { element, key: keyInput, value: valueInput };
    this.#rows.push(row);
    this.#list.append(element);
    return row;
  }

  #remove(row: EntryRow): void {
    this.#rows.splice(this.#rows.indexOf(row), 1);
    row.element.remove();
    const last = this.#rows.at(-1) ?? this.#add({ key: '', value: '' });
    last.key.focus();
  }

  #paste(): void {
    const entries = entriesOfLines(this.#lines.value);
    this.#wrong.textContent = typeof entries === 'string' ? entries : '';
    if (typeof entries === 'string') return;
    this.fill(entries);
    this.#lines.value = '';
    (byId('entries-pasted') as HTMLDetailsElement).open = false;
    this.#rows[0]?.value.focus();
  }
}
