import { isToken, storedToken, storeToken } from '../ask/token-keeper.js';
import { byId } from '../dom/element.js';
import type { PageState } from './page-state.js';

const NO_TOKEN =
  'A token can contain only ASCII letters, digits and punctuation, and no spaces. Copy the whole token again.';

/** Asks for a token if the server requires one. */
export class TokenDialog {
  readonly #state: PageState;
  readonly #dialog = byId('token') as HTMLDialogElement;
  readonly #input = byId('token-input') as HTMLInputElement;
  readonly #keep = byId('token-keep') as HTMLInputElement;

  /** @param changed called when the token has changed */
  constructor(state: PageState, changed: () => void) {
    this.#state = state;
    state.client.token = storedToken();
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
    byId('token-other').addEventListener('click', () => this.ask('The new token replaces the current one.'));
    for (const event of ['click', 'submit', 'change']) {
      document.addEventListener(event, (action) => this.#onUserAction(action), { capture: true });
    }
    byId('token-forget').addEventListener('click', () => {
      storeToken(undefined);
      // The page must not keep data that was read with the token.
      location.reload();
    });
  }

  /** Opens the dialog with the server's message. */
  ask(sentence: string): void {
    // The user may be typing.
    if (this.#dialog.open) return;
    byId('token-why').textContent = sentence;
    byId('token-wrong').textContent = '';
    this.#input.value = '';
    // Another open dialog would be hidden below this one.
    (byId('change') as HTMLDialogElement).close();
    this.#dialog.showModal();
    this.#input.focus();
  }

  /** Buttons and forms send their question even if the token was refused. Links only change the view. */
  #onUserAction({ target }: Event): void {
    if (!(target instanceof Element) || this.#dialog.contains(target)) return;
    if (target.closest('button, form') !== null) this.#state.client.recordUserAction();
  }

  #take(token: string): void {
    this.#state.client.token = token;
    storeToken(this.#keep.checked ? token : undefined);
    this.#input.value = '';
  }
}
