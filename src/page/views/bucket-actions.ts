import type { BucketAnswer, BucketQuestion, ShownHold } from '../../admin/buckets/messages.js';
import { button, byId, type Child, el, spoken } from '../dom/element.js';
import { countOf } from '../text/numbers.js';
import { briefText } from '../text/shown-text.js';
import { spanText } from '../text/times.js';
import type { Change } from './change-dialog.js';

/** The caller that the actions apply to. */
export type ActionTarget = Pick<BucketQuestion, 'domain' | 'entries' | 'limit'>;

const input = (id: string): HTMLInputElement => byId(id) as HTMLInputElement;
const select = (id: string): HTMLSelectElement => byId(id) as HTMLSelectElement;

const FORMS = ['do-reset', 'do-grant', 'do-release'] as const;

/** The forms for actions on the caller whose bucket is shown. */
export class BucketActions {
  readonly #target: () => ActionTarget | undefined;
  readonly #start: (change: Change) => void;

  constructor(target: () => ActionTarget | undefined, start: (change: Change) => void) {
    this.#target = target;
    this.#start = start;
    this.#onSubmit('do-reset', (about) => ({
      title: 'Fill up the buckets',
      question: { action: 'reset', ...about, ...this.#rule('reset-rule') },
    }));
    this.#onSubmit('do-grant', (about) => {
      const tokens = Number(input('grant-tokens').value);
      return {
        title: `Grant ${countOf(tokens, 'token')}`,
        question: { action: 'grant', ...about, tokens, ...this.#rule('grant-rule') },
      };
    });
    this.#onSubmit('do-release', (about) => ({
      title: 'Release all holds',
      question: { action: 'release', ...releaseTarget(about), all: true, ...this.#rule('release-rule') },
    }));
  }

  /** Clears the forms, because their values belong to another caller. */
  clear(): void {
    for (const id of FORMS) (byId(id) as HTMLFormElement).reset();
  }

  /** Offers the actions that fit an answer. `why`: the reason why changes are not allowed, or undefined. */
  show({ buckets }: BucketAnswer, why: string | undefined): void {
    const rules = [...new Set(buckets.map(({ rule }) => rule))];
    for (const id of ['reset-rule', 'grant-rule', 'release-rule']) {
      const chosen = select(id).value;
      select(id).replaceChildren(
        el('option', { value: '' }, 'all listed limits'),
        ...rules.map((rule) => el('option', { value: rule }, briefText(rule, 60))),
      );
      if (rules.includes(chosen)) select(id).value = chosen;
    }
    byId('actions-why').textContent = why ?? '';
    (byId('actions-fields') as HTMLFieldSetElement).disabled = why !== undefined;
    const none = buckets.length === 0;
    for (const id of ['reset-button', 'grant-button']) (byId(id) as HTMLButtonElement).disabled = none;
    const isHeld = buckets.some(({ holds }) => holds !== undefined);
    (byId('release-button') as HTMLButtonElement).disabled = !isHeld;
  }

  #onSubmit(id: (typeof FORMS)[number], change: (about: ActionTarget) => Change): void {
    byId(id).addEventListener('submit', (event) => {
      event.preventDefault();
      const about = this.#target();
      if (about !== undefined) this.#start(change(about));
    });
  }

  #rule(id: string): Pick<BucketQuestion, 'rule'> {
    const { value } = select(id);
    return value === '' ? {} : { rule: value };
  }
}

/** Creates the button that releases a hold of the caller. */
export function releaseButton(
  { id, age }: ShownHold,
  about: ActionTarget,
  disabled: boolean,
  start: (change: Change) => void,
): Child {
  const question = { action: 'release', ...releaseTarget(about), hold: id } as const;
  const release = button('Release', () => start({ title: 'Release the hold', question }), { disabled });
  release.append(spoken(` the hold of ${spanText(age)}`));
  return release;
}

/** Releases apply to entries, regardless of overrides. */
function releaseTarget({ domain, entries }: ActionTarget): Pick<BucketQuestion, 'domain' | 'entries'> {
  return { entries, ...(domain !== undefined && { domain }) };
}
