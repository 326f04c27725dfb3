import { isToken, keepToken, keptToken } from '../ask/token-keeper.js';
import { byId } from '../dom/element.js';
import type { PageState } from './page-state.js';

const NO_TOKEN =
  'A token has no spaces, and no characters but the letters, digits and signs of ASCII: copy all of it once more.';

/** Asks for a token where the server wants one. */
export class TokenDialog {
  readonly #state: PageState;
  readonly #dialog = byId('token') as HTMLDialogElement;
  readonly #input = byId('token-input') as HTMLInputElement;
  readonly #keep = byId('token-keep') as HTMLInputElement;

  /** @param changed called when there is another token */
  constructor(state: PageState, changed: () => void) {
    this.#state = state;
    state.client.token = keptToken();
    state.client.onTokenWanted = (sentence) => this.ask(sentence);
    byId('token-form').addEventListener('submit', (event) => {
      event.preventDefault();
      const token = this.#input.value.trim();
      if (token === '') return;
      byId('token-wrong').textContent = isToken(token) ? '' : NO_TOKEN;
      if (!isToken(token)) return;
      this.#take(token);
      this.#dialog.close();
      changed();
    });
    byId('token-cancel').addEventListener('click', () => this.#dialog.close());
    byId('token-other').addEventListener('click', () =>
      this.ask('Another token takes the place of the one in use.'),
    );
    for (const event of ['click', 'submit', 'change']) {
      document.addEventListener(event, (happened) => this.#acted(happened), { capture: true });
    }
    byId('token-forget').addEventListener('click', () => {
      keepToken(undefined);
      // Nothing of what the token showed stays.
      location.reload();
    });
  }

  /** Opens the dialog with the server's sentence. */
  ask(sentence: string): void {
    // Somebody may be typing.
    if (this.#dialog.open) return;
    byId('token-why').textContent = sentence;
    byId('token-wrong').textContent = '';
    this.#input.value = '';
    // Another dialog would lie below it, unfinished.
    (byId('change') as HTMLDialogElement).close();
    this.#dialog.showModal();
    this.#input.focus();
  }

  /** Buttons and forms ask for what they are for, also without a token that is good; links only lead elsewhere. */
  #acted({ target }: Event): void {
    if (!(target instanceof Element) || this.#dialog.contains(target)) return;
    if (target.closest('button, form') !== null) this.#state.client.acts();
  }

  #take(token: string): void {
    this.#state.client.token = token;
    keepToken(this.#keep.checked ? token : undefined);
    this.#input.value = '';
  }
}
