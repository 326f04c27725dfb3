import type { BucketAnswer } from '../../server/buckets/messages.js';
import { byId, el } from '../dom/element.js';
import { clockOf, entriesShown, nameOf, sentence, serverNow } from '../dom/texts.js';
import type { NamedEntry } from '../text/entry-lines.js';
import { type ActionTarget, BucketActions } from './bucket-actions.js';
import { controlsTable, limitsTable, notesOf } from './bucket-answer.js';
import type { ChangeDialog } from './change-dialog.js';
import { fillDomains } from './domain-select.js';
import { EntriesForm } from './entries-form.js';
import type { PageState, View } from './page-state.js';

/** What is left of the limits of one caller, and what can be done about it. */
export class BucketView implements View {
  readonly #state: PageState;
  readonly #form = new EntriesForm();
  readonly #domain = byId('bucket-domain') as HTMLSelectElement;
  readonly #limit = byId('bucket-limit') as HTMLInputElement;
  readonly #result = byId('bucket-result');
  readonly #panel = byId('bucket-panel');
  readonly #wrong = byId('bucket-wrong');
  readonly #actions: BucketActions;
  /** What the result is of; actions concern this, whatever is typed meanwhile. */
  #shown: ActionTarget | undefined;
  #answer: BucketAnswer | undefined;
  #asked = 0;

  constructor(state: PageState, dialog: ChangeDialog) {
    this.#state = state;
    this.#actions = new BucketActions(
      () => this.#shown,
      (change) => void dialog.start(change, () => this.#again()),
    );
    byId('bucket-form').addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#submit();
    });
    byId('bucket-again').addEventListener('click', () => void this.#again());
    this.#domain.addEventListener('change', () => this.#offerKeys());
  }

  open(): void {
    this.update();
  }

  update(): void {
    fillDomains(this.#domain, this.#state.domainsInForce());
    this.#offerKeys();
    if (this.#answer !== undefined) this.#actions.show(this.#answer, this.#state.whyNoChange());
  }

  /** Shows the bucket of these entries. */
  showBucket(domain: string, entries: readonly NamedEntry[]): void {
    if (![...this.#domain.options].some(({ value }) => value === domain)) {
      this.#domain.append(el('option', { value: domain }, domain));
    }
    this.#domain.value = domain;
    this.#limit.value = '';
    this.#form.fill(entries);
    void this.#submit();
  }

  #offerKeys(): void {
    const dumped = this.#state.policies?.domains.find(({ domain }) => domain === this.#domain.value);
    const keys = new Set<string>();
    // Enough to choose from; a policy may have ten thousand.
    for (const rule of (dumped?.policy?.rules ?? []).slice(0, 500))
      for (const key of rule.keys) keys.add(key);
    this.#form.offer([...keys].slice(0, 50));
  }

  async #submit(): Promise<void> {
    const entries = this.#form.read();
    this.#wrong.textContent = typeof entries === 'string' ? entries : '';
    if (typeof entries === 'string') return;
    const limit = this.#limit.value.trim();
    const domain = this.#domain.value;
    await this.#ask({ entries, ...(domain !== '' && { domain }), ...(limit !== '' && { limit }) });
    byId('bucket-result-title').focus();
  }

  /** Asks the same again. */
  async #again(): Promise<void> {
    if (this.#shown !== undefined) await this.#ask(this.#shown);
  }

  async #ask(about: ActionTarget): Promise<void> {
    const number = ++this.#asked;
    const answer = await this.#state.client.ask<BucketAnswer>('buckets', { action: 'show', ...about });
    if (number !== this.#asked) return;
    this.#shown = about;
    this.#result.hidden = false;
    this.#answer = answer.ok ? answer.body : undefined;
    byId('bucket-actions').hidden = !answer.ok;
    if (!answer.ok) {
      this.#panel.replaceChildren(el('div', { class: 'problem' }, sentence(answer.error)));
      return;
    }
    const { domain, entries, store, controls, meets } = answer.body;
    this.#panel.replaceChildren(
      el(
        'p',
        { class: 'about' },
        ...(domain === null ? [] : ['Domain ', nameOf(domain), ', ']),
        'entries ',
        entriesShown(entries),
        ', in ',
        nameOf(store),
        ', at ',
        clockOf(serverNow()),
        '.',
      ),
      ...[...limitsTable(answer.body), ...notesOf(answer.body)].filter((child) => child !== undefined),
      ...(controls.length === 0 ? [] : [controlsTable(controls, 'Blocks and exemptions of these entries')]),
    );
    byId('bucket-actions').hidden = meets === 'nothing' && controls.length === 0;
    this.#actions.show(answer.body, this.#state.whyNoChange());
  }
}
