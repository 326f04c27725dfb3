import { button, byId, el, freshId, spoken } from '../dom/element.js';
import { entriesElement } from '../dom/texts.js';
import { entriesOfLines, type NamedEntry } from '../text/entry-lines.js';

interface EntryRow {
  readonly element: HTMLElement;
  /** Returns the entry that is sent. */
  readonly read: () => NamedEntry;
  /** Whether the entry was given, cannot be edited, and is sent unchanged. */
  readonly isFixed: boolean;
  readonly focus: () => void;
}

/** The form for the entries of a descriptor, typed or pasted. Entries are never part of a URL. */
export class EntriesForm {
  readonly #list = byId('entries');
  readonly #lines = byId('entries-lines') as HTMLTextAreaElement;
  readonly #wrong = byId('entries-wrong');
  readonly #rows: EntryRow[] = [];

  constructor() {
    byId('entries-add').addEventListener('click', () => this.#add({ key: '', value: '' }).focus());
    byId('entries-paste').addEventListener('click', () => this.#paste());
    this.#add({ key: '', value: '' });
  }

  /** Returns the entries of all non-empty rows, or an error message if a key is missing. */
  read(): readonly NamedEntry[] | string {
    const rows = this.#rows
      .map(({ read, isFixed }) => ({ entry: read(), isFixed }))
      .filter(({ entry: { key, value }, isFixed }) => isFixed || key !== '' || value !== '');
    if (rows.length === 0) return 'Enter at least one entry, such as the key customer and the value acme.';
    const noKey = rows.some(({ entry, isFixed }) => entry.key === '' && !isFixed);
    return noKey
      ? 'An entry has a value but no key. Enter a key, or remove the entry.'
      : rows.map(({ entry }) => entry);
  }

  /**
   * Shows other entries. A value that an input field would change, such as a line break, is shown as text and kept
   * unchanged.
   */
  fill(entries: readonly NamedEntry[]): void {
    for (const { element } of this.#rows.splice(0)) element.remove();
    for (const entry of entries.length === 0 ? [{ key: '', value: '' }] : entries) this.#add(entry);
  }

  /** Offers keys of the policy as suggestions. */
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
    if (keyInput.value !== key || valueInput.value !== value) return this.#addFixed({ key, value });
    const remove = button('Remove', () => this.#remove(row), { class: 'quiet' });
    remove.append(spoken(' this entry'));
    const element = el(
      'li',
      { class: 'entry-row' },
      el('span', { class: 'field' }, el('label', { for: keyId }, 'Key'), keyInput),
      el('span', { class: 'field grow' }, el('label', { for: valueId }, 'Value'), valueInput),
      remove,
    );
    const row: EntryRow = {
      element,
      read: () => ({ key: keyInput.value, value: valueInput.value }),
      isFixed: false,
      focus: () => (keyInput.value === '' ? keyInput : valueInput).focus(),
    };
    return this.#append(row);
  }

  /**
   * Adds an entry that an input field cannot hold. The field would remove line breaks, and the entry would name another
   * caller.
   */
  #addFixed(entry: NamedEntry): EntryRow {
    const remove = button('Remove', () => this.#remove(row), { class: 'quiet' });
    remove.append(spoken(' this entry'));
    const element = el(
      'li',
      { class: 'entry-row' },
      el(
        'span',
        { class: 'field grow' },
        entriesElement([entry]),
        el(
          'span',
          { class: 'note' },
          'This entry contains characters that an input field cannot show. You cannot edit the entry. ' +
            'The page sends the entry unchanged.',
        ),
      ),
      remove,
    );
    const row: EntryRow = { element, read: () => entry, isFixed: true, focus: () => remove.focus() };
    return this.#append(row);
  }

  #append(row: EntryRow): EntryRow {
    this.#rows.push(row);
    this.#list.append(row.element);
    return row;
  }

  #remove(row: EntryRow): void {
    this.#rows.splice(this.#rows.indexOf(row), 1);
    row.element.remove();
    const last = this.#rows.at(-1) ?? this.#add({ key: '', value: '' });
    last.focus();
  }

  #paste(): void {
    const entries = entriesOfLines(this.#lines.value);
    this.#wrong.textContent = typeof entries === 'string' ? entries : '';
    if (typeof entries === 'string') return;
    this.fill(entries);
    this.#lines.value = '';
    (byId('entries-pasted') as HTMLDetailsElement).open = false;
    this.#rows[0]?.focus();
  }
}
