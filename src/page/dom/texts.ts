import { countText } from '../text/numbers.js';
import { cutText, MAX_SHOWN_TEXT, visibleText } from '../text/shown-text.js';
import { clockText, dateText, relativeText, spanText, utcText } from '../text/times.js';
import { button, type Child, el, spoken } from './element.js';

/**
 * Shows a name or value from outside, isolated from the surrounding text direction, and shortened to `most` characters.
 */
export function nameOf(text: string, most = MAX_SHOWN_TEXT): HTMLElement {
  const shown = text === '' ? '""' : visibleText(cutText(text, most));
  return el('bdi', { class: 'name' }, shown);
}

/** Shows a name with a button that shows the rest of a long name. Buttons must not contain such a name. */
export function expandableName(text: string): HTMLElement {
  const name = nameOf(text);
  if (text.length <= MAX_SHOWN_TEXT) return name;
  const more = button(`show all ${countText(text.length)} characters`, () => {
    name.textContent = visibleText(text);
    more.remove();
    name.tabIndex = -1;
    name.focus();
  });
  more.className = 'link';
  return el('span', { class: 'long' }, name, ' ', more);
}

/** Shows entries as `key=value`. */
export function entriesElement(
  entries: readonly { readonly key: string; readonly value: string }[],
  show: (text: string) => HTMLElement = expandableName,
): HTMLElement {
  const list = el('span', { class: 'entries' });
  for (const { key, value } of entries) {
    if (list.hasChildNodes()) list.append(' ');
    list.append(el('span', { class: 'entry' }, nameOf(key), '=', show(value)));
  }
  return list;
}

/** Offset of the server's clock from the browser's clock, in seconds. */
let clockOffset = 0;

/** Sets the server's time. All relative times of the page use the server's clock. */
export function setServerNow(seconds: number): void {
  clockOffset = seconds - Date.now() / 1000;
}

/** Returns the current time of the server's clock, in seconds since the epoch. */
export function serverNow(): number {
  return Date.now() / 1000 + clockOffset;
}

/** Shows a time as local date and time, with UTC in its title. */
export function timeOf(seconds: number): HTMLElement {
  return el('time', { datetime: utcIso(seconds), title: utcText(seconds) }, dateText(seconds));
}

/** Shows a time as the local time of day, with UTC in its title. */
export function clockOf(seconds: number): HTMLElement {
  return el('time', { datetime: utcIso(seconds), title: utcText(seconds) }, clockText(seconds));
}

/** Shows the time since, or until, a point in time; {@link refreshTimes} updates it. */
export function relativeTime(seconds: number): HTMLElement {
  const text = relativeText(seconds, serverNow());
  return el('time', { datetime: utcIso(seconds), title: utcText(seconds), 'data-at': seconds }, text);
}

/** Shows the duration since a point in time; {@link refreshTimes} updates it. */
export function durationSince(seconds: number): HTMLElement {
  return el('span', { 'data-since': seconds }, durationText(seconds, serverNow()));
}

function durationText(since: number, now: number): string {
  return spanText(Math.max(0, Math.floor(now - since)));
}

/** Updates all relative times of the page. */
export function refreshTimes(): void {
  const now = serverNow();
  for (const span of document.querySelectorAll<HTMLElement>('span[data-since]')) {
    const text = durationText(Number(span.dataset['since']), now);
    if (span.textContent !== text) span.textContent = text;
  }
  for (const time of document.querySelectorAll<HTMLElement>('time[data-at]')) {
    const text = relativeText(Number(time.dataset['at']), now);
    if (time.textContent !== text) time.textContent = text;
  }
}

function utcIso(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}

/** Shows a state as a sign, a word and a color. The word alone is sufficient. */
export function stateOf(kind: 'good' | 'bad' | 'watch' | 'none', word: string): HTMLElement {
  const sign = { good: '●', bad: '▲', watch: '◆', none: '○' }[kind];
  return el(
    'span',
    { class: `state ${kind}` },
    el('span', { 'aria-hidden': 'true', class: 'sign' }, sign),
    word,
  );
}

/** Shows a message from outside in full, with its line breaks. */
export function sentence(text: string): HTMLElement {
  return el('p', { class: 'sentence', dir: 'auto' }, text.split('\n').map(visibleText).join('\n'));
}

/** Shows a command with a button that copies it. */
export function commandOf(text: string, about: string): HTMLElement {
  const code = el('code', {}, text);
  const copied = el('span', { role: 'status' });
  const copy = button('Copy', () => {
    void copyText(text, code).then((done) => {
      copied.textContent = done ? 'copied' : 'selected: press Ctrl+C or ⌘C to copy';
    });
  });
  copy.append(spoken(` ${about}`));
  return el('div', { class: 'command' }, el('pre', {}, code), copy, copied);
}

async function copyText(text: string, code: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Browsers only allow clipboard access over TLS or from the same machine.
    getSelection()?.selectAllChildren(code);
    return false;
  }
}

/** Returns the children with a separator between each two. */
export function joined(children: readonly Child[], separator: string): readonly Child[] {
  return children.flatMap((child, at) => (at === 0 ? [child] : [separator, child]));
}
