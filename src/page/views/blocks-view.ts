import type { BucketAnswer } from '../../admin/buckets/messages.js';
import { byId, type Child, el, RenderedPart } from '../dom/element.js';
import { sentence } from '../dom/texts.js';
import { countText } from '../text/numbers.js';
import { endButton } from './bucket-actions.js';
import { controlsTable, notesOf } from './bucket-answer.js';
import type { ChangeDialog } from './change-dialog.js';
import type { PageState, View } from './page-state.js';

/** Refresh interval while the view is open, in milliseconds. */
const REFRESH_MS = 5000;

type Shown = Pick<BucketAnswer, 'controls' | 'more_controls' | 'notes'> & {
  readonly why: string | undefined;
};

/** The view of all current blocks and exemptions. */
export class BlocksView implements View {
  readonly #state: PageState;
  readonly #dialog: ChangeDialog;
  readonly #place = byId('blocks-place');
  readonly #list: RenderedPart<Shown>;
  #asked = 0;
  /** Number of the last question whose answer was shown. */
  #lastShown = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(state: PageState, dialog: ChangeDialog) {
    this.#state = state;
    this.#dialog = dialog;
    this.#list = new RenderedPart(byId('blocks-list'), (shown) => this.#listed(shown));
  }

  open(): void {
    clearInterval(this.#timer);
    this.#timer = setInterval(() => {
      if (!document.hidden && !this.#place.contains(document.activeElement)) void this.#ask();
    }, REFRESH_MS);
    void this.#ask();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  update(): void {}

  async #ask(): Promise<void> {
    const number = ++this.#asked;
    const answer = await this.#state.client.ask<BucketAnswer>('buckets', { action: 'blocks' });
    // An earlier answer may contain a block that has ended since.
    if (number < this.#lastShown) return;
    this.#lastShown = number;
    byId('blocks-failed').replaceChildren(...(answer.ok ? [] : [sentence(answer.error)]));
    if (!answer.ok) return;
    const { controls, more_controls, notes } = answer.body;
    this.#list.show({ controls, more_controls, notes, why: this.#state.noChangeReason() });
  }

  #listed({ controls, more_controls: more, notes, why }: Shown): readonly Child[] {
    const said = notesOf({ notes, meets: 'none' });
    if (controls.length === 0) {
      const how = 'To block or exempt a caller, open the Bucket view.';
      return [
        el('p', { class: 'empty' }, 'No caller is blocked or exempt. ', el('a', { href: '#bucket' }, how)),
        ...said,
      ];
    }
    return [
      why === undefined ? undefined : el('p', { class: 'note' }, why),
      controlsTable(controls, 'Current blocks and exemptions', {
        end: (control) =>
          endButton(control, why !== undefined, (change) => {
            void this.#dialog.start(change, () => this.#ask());
          }),
      }),
      more > 0 ? el('p', { class: 'note' }, `${countText(more)} more not listed`) : undefined,
      ...said,
    ];
  }
}
