import type { BucketAnswer, BucketQuestion } from '../../admin/buckets/messages.js';
import type { AskFailure } from '../ask/client.js';
import { button, byId, type Child, el } from '../dom/element.js';
import { entriesElement, nameOf, sentence } from '../dom/texts.js';
import { limitsTable, notesOf } from './bucket-answer.js';
import type { PageState } from './page-state.js';

/** An action that changes the buckets of a caller. */
export interface Change {
  readonly question: BucketQuestion;
  /** Title of the dialog: `Grant 5 tokens`. */
  readonly title: string;
}

/** Shows the effect of a change, carries the change out after confirmation, and shows the result. */
export class ChangeDialog {
  readonly #state: PageState;
  readonly #dialog = byId('change') as HTMLDialogElement;
  readonly #title = byId('change-title');
  readonly #body = byId('change-body');
  readonly #buttons = byId('change-buttons');
  #done: () => void | Promise<void> = () => {};
  /** Whether a change was made, or may have been made, that must be shown when the dialog closes. */
  #isChanged = false;
  /** Number of the current question. Answers to earlier questions are ignored. */
  #number = 0;
  /** Whether a change is being carried out. */
  #isBusy = false;
  /** The element that opened the dialog. */
  #opener: HTMLElement | undefined;
  /** The heading of the view that contains this element. */
  #heading: HTMLElement | null = null;

  constructor(state: PageState) {
    this.#state = state;
    this.#dialog.addEventListener('close', () => void this.#closed());
    // The result of a running change must be shown. Some browsers close a dialog anyway if Escape is pressed twice.
    this.#dialog.addEventListener('cancel', (event) => {
      if (this.#isBusy) event.preventDefault();
    });
  }

  /** @param done called when the dialog closes after a change was made, or may have been made */
  async start(change: Change, done: () => void | Promise<void>): Promise<void> {
    const number = ++this.#number;
    this.#done = done;
    const { activeElement } = document;
    this.#opener = activeElement instanceof HTMLElement ? activeElement : undefined;
    this.#heading = activeElement?.closest('main > section')?.querySelector('h2') ?? null;
    this.#isChanged = this.#isBusy = false;
    this.#show(`${change.title}: checking the effect…`, [], [this.#close('Cancel')]);
    this.#dialog.showModal();
    this.#title.focus();
    const answer = await this.#state.client.ask<BucketAnswer>('buckets', {
      ...change.question,
      dry_run: true,
    });
    if (number !== this.#number) return;
    if (!answer.ok) {
      this.#show(`${change.title}: not possible`, [sentence(answer.error)], [this.#close('Close')]);
      return;
    }
    const doIt = button('Confirm', () => void this.#carryOut(change, done), { class: 'primary' });
    this.#show(
      `${change.title}?`,
      [
        el('p', {}, el('strong', {}, 'Nothing has changed yet.'), ' The action would have this effect:'),
        ...answerParts(answer.body),
      ],
      [this.#close('Cancel'), doIt],
    );
  }

  /**
   * Restores the focus. The browser returns it to the element that opened the dialog. If that element is gone, the
   * heading of the view gets the focus.
   */
  async #closed(): Promise<void> {
    if (!this.#dialog.open) this.#number++;
    if (this.#isChanged) await this.#done();
    const { activeElement } = document;
    const isElsewhere = activeElement !== document.body && activeElement !== this.#opener;
    if (isElsewhere || this.#opener?.checkVisibility() === true) return;
    this.#heading?.focus();
  }

  async #carryOut({ question, title }: Change, done: () => void | Promise<void>): Promise<void> {
    const number = this.#number;
    this.#isBusy = true;
    for (const one of this.#buttons.querySelectorAll('button')) one.disabled = true;
    const answer = await this.#state.client.ask<BucketAnswer>('buckets', question);
    const outcome = answer.ok ? `Done: ${lowerFirst(title)}` : failureTitle(title, answer);
    if (number !== this.#number) {
      // The dialog was closed, and may show another change by now.
      this.#state.announce(`${outcome}.`);
      await done();
      return;
    }
    this.#isBusy = false;
    this.#isChanged = true;
    const body = answer.ok ? answerParts(answer.body) : failureParts(answer);
    this.#show(outcome, body, [this.#close('Close')]);
  }

  #close(label: string): HTMLButtonElement {
    return button(label, () => this.#dialog.close());
  }

  #show(title: string, body: readonly Child[], buttons: readonly HTMLButtonElement[]): void {
    this.#title.textContent = title;
    this.#body.replaceChildren(...body.filter((child) => child !== undefined));
    this.#buttons.replaceChildren(...buttons);
    // The title is read first, and Tab continues from there.
    if (this.#dialog.open) this.#title.focus();
  }
}

function failureTitle(title: string, { isMaybeDone }: AskFailure): string {
  return isMaybeDone ? `${title}: outcome unknown` : `${title}: not done`;
}

function failureParts({ error, isMaybeDone }: AskFailure): readonly Child[] {
  const look = 'Check whether the action took effect before you try again.';
  return [sentence(error), isMaybeDone ? sentence(look) : undefined];
}

function answerParts(answer: BucketAnswer): readonly Child[] {
  const { domain, entries } = answer;
  return [
    el('p', {}, 'Domain ', nameOf(domain), ', entries ', entriesElement(entries)),
    ...limitsTable(answer),
    ...notesOf(answer),
  ];
}

function lowerFirst(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1);
}
