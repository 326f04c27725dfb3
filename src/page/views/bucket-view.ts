import type { BucketAnswer, ShownHold } from '../../admin/buckets/messages.js';
import { byId, type Child, el } from '../dom/element.js';
import { clockOf, entriesElement, nameOf, sentence, serverNow } from '../dom/texts.js';
import type { NamedEntry } from '../text/entry-lines.js';
import { type ActionTarget, BucketActions, releaseButton } from './bucket-actions.js';
import { limitsTable, notesOf } from './bucket-answer.js';
import type { Change, ChangeDialog } from './change-dialog.js';
import { chooseDomain, fillDomains } from './domain-select.js';
import { EntriesForm } from './entries-form.js';
import type { PageState, View } from './page-state.js';

/** The view of the limits of one caller, and the actions for the caller. */
export class BucketView implements View {
  readonly #state: PageState;
  readonly #dialog: ChangeDialog;
  readonly #form = new EntriesForm();
  readonly #domain = byId('bucket-domain') as HTMLSelectElement;
  readonly #limit = byId('bucket-limit') as HTMLInputElement;
  readonly #result = byId('bucket-result');
  readonly #panel = byId('bucket-panel');
  readonly #wrong = byId('bucket-wrong');
  readonly #actions: BucketActions;
  /** The caller of the shown result. Actions apply to this caller, even if the form has changed. */
  #shown: ActionTarget | undefined;
  #answer: BucketAnswer | undefined;
  #lastTarget: ActionTarget | undefined;
  #asked = 0;

  constructor(state: PageState, dialog: ChangeDialog) {
    this.#state = state;
    this.#dialog = dialog;
    this.#actions = new BucketActions(
      () => this.#shown,
      (change) => this.#start(change),
    );
    byId('bucket-form').addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#submit();
    });
    byId('bucket-again').addEventListener('click', () => void this.#refresh());
    this.#domain.addEventListener('change', () => this.#offerKeys());
  }

  open(): void {
    this.update();
    // The previous question may have failed because of the server or the token, which may have changed.
    if (this.#answer === undefined) void this.#refresh();
  }

  update(): void {
    fillDomains(this.#domain, this.#state.domainsInEffect());
    this.#offerKeys();
    this.#offer();
  }

  /** Updates the actions that are available now. */
  #offer(): void {
    if (this.#answer !== undefined) this.#actions.show(this.#answer, this.#state.noChangeReason());
  }

  #start(change: Change): void {
    void this.#dialog.start(change, () => this.#refresh());
  }

  /** Shows the bucket of these entries. `limit`: the override of the bucket, if any. */
  showBucket(domain: string, entries: readonly NamedEntry[], limit = ''): void {
    chooseDomain(this.#domain, domain);
    this.#limit.value = limit;
    this.#form.fill(entries);
    void this.#submit();
  }

  #offerKeys(): void {
    const dumped = this.#state.policies?.domains.find(({ domain }) => domain === this.#domain.value);
    const keys = new Set<string>();
    // Enough suggestions. A policy may contain ten thousand rules.
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

  /** Repeats the last question, even if its answer has not arrived. */
  async #refresh(): Promise<void> {
    if (this.#lastTarget !== undefined) await this.#ask(this.#lastTarget);
  }

  async #ask(about: ActionTarget): Promise<void> {
    const number = ++this.#asked;
    this.#lastTarget = about;
    const answer = await this.#state.client.ask<BucketAnswer>('buckets', { action: 'show', ...about });
    if (number !== this.#asked) return;
    if (JSON.stringify(about) !== JSON.stringify(this.#shown)) this.#actions.clear();
    this.#shown = about;
    this.#result.hidden = false;
    this.#answer = answer.ok ? answer.body : undefined;
    byId('bucket-actions').hidden = !answer.ok;
    this.#offer();
    if (!answer.ok) {
      this.#panel.replaceChildren(el('div', { class: 'problem' }, sentence(answer.error)));
      return;
    }
    const isDisabled = this.#state.noChangeReason() !== undefined;
    const release = (hold: ShownHold): Child =>
      releaseButton(hold, about, isDisabled, (change) => this.#start(change));
    const { domain, entries, store, meets } = answer.body;
    this.#panel.replaceChildren(
      el(
        'p',
        { class: 'about' },
        'Domain ',
        nameOf(domain),
        ', entries ',
        entriesElement(entries),
        ', in ',
        nameOf(store),
        ', at ',
        clockOf(serverNow()),
        '.',
      ),
      ...[...limitsTable(answer.body, release), ...notesOf(answer.body)].filter(
        (child) => child !== undefined,
      ),
    );
    byId('bucket-actions').hidden = meets === 'nothing';
  }
}
