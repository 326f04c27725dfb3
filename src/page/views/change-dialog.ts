import type { BucketAnswer, BucketQuestion } from '../../admin/buckets/messages.js';
import type { AskFailure } from '../ask/client.js';
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
  /** Whether something was done, or may have been, that is to be seen when the dialog is closed. */
  #isChanged = false;
  /** Another number for each question: what comes of one that is not asked any more is not shown. */
  #number = 0;
  /** Whether something is being done now. */
  #isBusy = false;
  /** What was used to open the dialog. */
  #opener: HTMLElement | undefined;
  /** The heading of the view that it is part of. */
  #heading: HTMLElement | null = null;

  constructor(state: PageState) {
    this.#state = state;
    this.#dialog.addEventListener('close', () => void this.#closed());
    // What comes of it is to be seen. Some browsers close a dialog nonetheless when Escape is pressed again.
    this.#dialog.addEventListener('cancel', (event) => {
      if (this.#isBusy) event.preventDefault();
    });
  }

  /** @param done called when the dialog is closed after something was done, or may have been */
  async start(change: Change, done: () => void | Promise<void>): Promise<void> {
    const number = ++this.#number;
    this.#done = done;
    const { activeElement } = document;
    this.#opener = activeElement instanceof HTMLElement ? activeElement : undefined;
    this.#heading = activeElement?.closest('main > section')?.querySelector('h2') ?? null;
    this.#isChanged = this.#isBusy = false;
    this.#show(`${change.title}: asking what it would do…`, [], [this.#close('Cancel')]);
    this.#dialog.showModal();
    this.#title.focus();
    const answer = await this.#state.client.ask<BucketAnswer>('buckets', {
      ...change.question,
      dry_run: true,
    });
    if (number !== this.#number) return;
    if (!answer.ok) {
      this.#show(`${change.title}: this cannot be done`, [sentence(answer.error)], [this.#close('Close')]);
      return;
    }
    const doIt = button('Do it', () => void this.#carryOut(change, done), { class: 'primary' });
    this.#show(
      `${change.title}?`,
      [
        el('p', {}, el('strong', {}, 'Nothing is changed yet.'), ' This is what it would do:'),
        ...answerParts(answer.body),
      ],
      [this.#close('Cancel'), doIt],
    );
  }

  /** The browser leads back to what opened the dialog; where that is gone, reading goes on from the heading. */
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
    const came = answer.ok ? `Done: ${lowerFirst(title)}` : failureTitle(title, answer);
    if (number !== this.#number) {
      // The dialog was closed, and may be about something else by now.
      this.#state.announce(`${came}.`);
      await done();
      return;
    }
    this.#isBusy = false;
    this.#isChanged = true;
    const body = answer.ok ? answerParts(answer.body) : failureParts(answer);
    this.#show(came, body, [this.#close('Close')]);
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

function failureTitle(title: string, { isMaybeDone }: AskFailure): string {
  return isMaybeDone ? `${title}: not known whether it was done` : `${title}: this was not done`;
}

function failureParts({ error, isMaybeDone }: AskFailure): readonly Child[] {
  const look = 'Look whether it was done before you try again.';
  return [sentence(error), isMaybeDone ? sentence(look) : undefined];
}

function answerParts(answer: BucketAnswer): readonly Child[] {
  const { domain, entries } = answer;
  return [
    domain === null || entries.length === 0
      ? undefined
      : el('p', {}, 'Domain ', nameOf(domain), ', entries ', entriesShown(entries)),
    ...limitsTable(answer),
    controlsPart(answer),
    ...notesOf(answer),
  ];
}

function controlsPart({ action, controls, dry_run: isDry }: BucketAnswer): Child {
  if (controls.length === 0) return undefined;
  if (action !== 'unblock' && action !== 'disallow') return controlsTable(controls, 'Blocks and exemptions');
  const kind = action === 'unblock' ? 'block' : 'exemption';
  return controlsTable(controls, `The ${kind} that ${isDry ? 'would end' : 'was ended'}`, {
    isLasting: false,
  });
}

function lowerFirst(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1);
}
