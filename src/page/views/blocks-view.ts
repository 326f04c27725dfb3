import type { BucketAnswer, ShownControl } from '../../server/buckets/messages.js';
import { button, byId, type Child, el, KeptPart, spoken } from '../dom/element.js';
import { sentence } from '../dom/texts.js';
import { countOf } from '../text/numbers.js';
import { briefText } from '../text/shown-text.js';
import { controlsTable, notesOf } from './bucket-answer.js';
import type { ChangeDialog } from './change-dialog.js';
import type { PageState, View } from './page-state.js';

/** How often it is asked again while it is seen, ms. */
const REFRESH_MS = 5000;

type Shown = Pick<BucketAnswer, 'controls' | 'more_controls' | 'notes'> & {
  readonly why: string | undefined;
};

/** All blocks and exemptions in force. */
export class BlocksView implements View {
  readonly #state: PageState;
  readonly #dialog: ChangeDialog;
  readonly #place = byId('blocks-place');
  readonly #list: KeptPart<Shown>;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(state: PageState, dialog: ChangeDialog) {
    this.#state = state;
    this.#dialog = dialog;
    this.#list = new KeptPart(byId('blocks-list'), (shown) => this.#listed(shown));
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
    const answer = await this.#state.client.ask<BucketAnswer>('buckets', { action: 'blocks' });
    byId('blocks-failed').replaceChildren(...(answer.ok ? [] : [sentence(answer.error)]));
    if (!answer.ok) return;
    const { controls, more_controls, notes } = answer.body;
    this.#list.show({ controls, more_controls, notes, why: this.#state.whyNoChange() });
  }

  #listed({ controls, more_controls: more, notes, why }: Shown): readonly Child[] {
    const said = notesOf({ notes, meets: 'none' });
    if (controls.length === 0) {
      const how = 'The view of a bucket can block or exempt its caller.';
      return [
        el('p', { class: 'empty' }, 'Nobody is blocked or exempted. ', el('a', { href: '#bucket' }, how)),
        ...said,
      ];
    }
    return [
      why === undefined ? undefined : el('p', { class: 'note' }, why),
      controlsTable(controls, 'Blocks and exemptions in force', (control) =>
        this.#end(control, why !== undefined),
      ),
      more > 0 ? el('p', { class: 'note' }, `and ${countOf(more, 'more')}, which are not listed`) : undefined,
      ...said,
    ];
  }

  #end(control: ShownControl, disabled: boolean): Child {
    const { id, kind, domain, identity } = control;
    const isBlock = kind === 'block';
    const start = (): void => {
      const question = { action: isBlock ? 'unblock' : 'disallow', domain, id } as const;
      const title = isBlock ? 'End the block' : 'End the exemption';
      void this.#dialog.start({ title, question }, () => this.#ask());
    };
    const end = button('End', start, { disabled });
    const whom = briefText(identity.map(({ key, value }) => `${key}=${value}`).join(' '));
    end.append(spoken(` the ${isBlock ? 'block' : 'exemption'} of ${whom}`));
    return end;
  }
}
