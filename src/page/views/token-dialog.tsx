import { effect, signal } from '@preact/signals';
import { useRef, useState } from 'preact/hooks';
import { changeToken, isToken, refusal } from '../ask/client.js';
import { restart } from '../ask/feed.js';
import { useModal } from '../parts/controls.js';
import { connection } from '../state.js';
import { closeChange } from './change-dialog.js';

const NO_TOKEN =
  'A token can contain only ASCII letters, digits and punctuation, and no spaces. Copy the whole token again.';

/** The reason why the dialog asks for a token, or undefined while it is closed. */
const reason = signal<string | undefined>(undefined);

/** Asks for a token. */
export function askToken(why: string): void {
  // Another open dialog would be hidden below this one.
  closeChange();
  reason.value = why;
}

effect(() => {
  if (refusal.value !== undefined) askToken(refusal.value);
});

/** Asks for a token if the server requires one, or another one. */
export function TokenDialog() {
  const dialog = useModal(reason.value !== undefined);
  const input = useRef<HTMLInputElement>(null);
  const [isKept, setKept] = useState(false);
  const [wrong, setWrong] = useState('');
  const close = () => {
    reason.value = undefined;
    setWrong('');
    if (input.current !== null) input.current.value = '';
  };
  const submit = (text: string) => {
    setWrong(isToken(text) ? '' : NO_TOKEN);
    if (!isToken(text)) return;
    changeToken(text, isKept);
    close();
    // Behind a proxy that buffers answers, the first answer takes ten seconds.
    connection.value = { kind: 'connecting' };
    restart();
  };
  return (
    <dialog id="token" ref={dialog} aria-labelledby="token-title" onClose={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          submit(input.current?.value.trim() ?? '');
        }}
      >
        <h2 id="token-title">weir requires a token</h2>
        <p class="sentence">{reason}</p>
        <p class="field">
          <label for="token-input">Token</label>
          <input id="token-input" ref={input} type="password" autocomplete="off" required />
        </p>
        <p class="problem-line" role="alert">
          {wrong}
        </p>
        <label>
          <input
            type="checkbox"
            checked={isKept}
            onChange={({ currentTarget }) => setKept(currentTarget.checked)}
          />{' '}
          keep the token until this tab is closed
        </label>
        <p class="note">The token is sent only to this server, in a header. It is never part of a URL.</p>
        <p class="row">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Use this token
          </button>
        </p>
      </form>
    </dialog>
  );
}
