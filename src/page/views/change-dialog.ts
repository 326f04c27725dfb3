import type { BucketAnswer, BucketQuestion } from '../../server/buckets/messages.js';
import { button, byId, type Child, el } from '../dom/element.js';
import { entriesShown, nameOf, sentence } from '../dom/texts.js';
import { controlsTable, limitsTable, notesOf } from './bucket-answer.js';
import type { PageState } from './page-state.js';

/** Something that changes what a caller may do. */
export interface Change {
  readonly question: BucketQuestion;
  /** `Grant 5 tokens`. */
  readonly title: string;
}

/** Shows what a change would do, does it when that is confirmed, and shows what it did. */
export class ChangeDialog {
  readonly #state: PageState;
  readonly #dialog = byId('change') as HTMLDialogElement;
  readonly #title = byId('change-title');
  readonly #body = byId('change-body');
  readonly #buttons = byId('change-buttons');
  #done: () => void | Promise<void> = () => {};
  #isChanged = false;
  /** What was used to open the dialog. */
  #opener: HTMLElement | undefined;
  /** The heading of the view that it is part of. */
  #heading: HTMLElement | null = null;

  constructor(state: PageState) {
    this.#state = state;
    this.#dialog.addEventListener('close', () => void this.#closed());
  }

  /** @param done called when the dialog is closed after something was done, or may have been */
  async start(change: Change, done: () => void | Promise<void>): Promise<void> {
    this.#done = done;
    const { activeElement } = document;
    this.#opener = activeElement instanceof HTMLElement ? activeElement : undefined;
    this.#heading = activeElement?.closest('main > section')?.querySelector('h2') ?? null;
    this.#isChanged = false;
    this.#show(`${change.title}: asking what it would do…`, [], [this.#close('Cancel')]);
    this.#dialog.showModal();
    this.#title.focus();
    const answer = await this.#state.client.ask<BucketAnswer>('buckets', {
      ...change.question,
      dry_run: true,
    });
    if (!this.#dialog.open) return;
    if (!answer.ok) {
      this.#show(`${change.title}: this cannot be done`, [sentence(answer.error)], [this.#close('Close')]);
      return;
    }
    const { meets, controls, buckets } = answer.body;
    const isVain = meets === 'nothing' || (meets === 'none' && controls.length === 0 && buckets.length === 0);
    const doIt = button('Do it', () => void this.#carryOut(change), { class: 'primary' });
    this.#show(
      `${change.title}?`,
      [
        el('p', {}, el('strong', {}, 'Nothing is changed yet.'), ' This is what it would do:'),
        ...answerParts(answer.body),
      ],
      isVain ? [this.#close('Close')] : [this.#close('Cancel'), doIt],
    );
  }

  /** The browser leads back to what opened the dialog; where that is gone, reading goes on from the heading. */
  async #closed(): Promise<void> {
    if (this.#isChanged) await this.#done();
    const { activeElement } = document;
    const isElsewhere = activeElement !== document.body && activeElement !== this.#opener;
    if (isElsewhere || this.#opener?.checkVisibility() === true) return;
    this.#heading?.focus();
  }

  async #carryOut({ question, title }: Change): Promise<void> {
    this.#isChanged = true;
    for (const one of this.#buttons.querySelectorAll('button')) one.disabled = true;
    const answer = await this.#state.client.ask<BucketAnswer>('buckets', question);
    const close = this.#close('Close');
    if (answer.ok) {
      this.#show(`Done: ${lowerFirst(title)}`, answerParts(answer.body), [close]);
    } else if (answer.status === 0) {
      const unsure =
        'weir did not answer, so it is not known whether this was done. Look at the bucket before you try again.';
      this.#show(`${title}: no answer`, [sentence(unsure)], [close]);
    } else {
      this.#show(`${title}: this was not done`, [sentence(answer.error)], [close]);
    }
  }

  #close(label: string): HTMLButtonElement {
    return button(label, () => this.#dialog.close());
  }

  #show(title: string, body: readonly Child[], buttons: readonly HTMLButtonElement[]): void {
    this.#title.textContent = title;
    this.#body.replaceChildren(...body.filter((child) => child !== undefined));
    this.#buttons.replaceChildren(...buttons);
    // What is read out first, and the place from which Tab leads on.
    if (this.#dialog.open) this.#title.focus();
  }
}

function answerParts(answer: BucketAnswer): readonly Child[] {
  const { domain, entries, controls } = answer;
  return [
    domain === null || entries.length === 0
      ? undefined
      : el('p', {}, 'Domain ', nameOf(domain), ', entries ', entriesShown(entries)),
    ...limitsTable(answer),
    controls.length === 0 ? undefined : controlsTable(controls, 'Blocks and exemptions'),
    ...notesOf(answer),
  ];
}

function lowerFirst(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1);
}
