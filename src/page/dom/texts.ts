import { countText } from '../text/numbers.js';
import { cutText, MAX_SHOWN_TEXT, visibleText } from '../text/shown-text.js';
import { clockText, dateText, relativeText, spanText, utcText } from '../text/times.js';
import { button, type Child, el, spoken } from './element.js';

/** A name or value that others chose, set apart from the text around it, and cut where it is long. */
export function nameOf(text: string, most = MAX_SHOWN_TEXT): HTMLElement {
  const shown = text === '' ? '""' : visibleText(cutText(text, most));
  return el('bdi', { class: 'name' }, shown);
}

/** The same with a button that shows the rest. Not for places that are buttons themselves. */
export function wholeName(text: string): HTMLElement {
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

/** Entries as `key=value`. */
export function entriesShown(
  entries: readonly { readonly key: string; readonly value: string }[],
  show: (text: string) => HTMLElement = wholeName,
): HTMLElement {
  const list = el('span', { class: 'entries' });
  for (const { key, value } of entries) {
    if (list.hasChildNodes()) list.append(' ');
    list.append(el('span', { class: 'entry' }, nameOf(key), '=', show(value)));
  }
  return list;
}

/** How far the clock of the server is ahead of that of the browser, seconds. */
let ahead = 0;

/** Takes the server's clock: all that is told in relation to now goes by it. */
export function setServerNow(seconds: number): void {
  ahead = seconds - Date.now() / 1000;
}

/** Now, by the server's clock, seconds since the epoch. */
export function serverNow(): number {
  return Date.now() / 1000 + ahead;
}

/** A time as local day and time, UTC in its title. */
export function timeOf(seconds: number): HTMLElement {
  return el('time', { datetime: utcIso(seconds), title: utcText(seconds) }, dateText(seconds));
}

/** A time as the local time of day, UTC in its title. */
export function clockOf(seconds: number): HTMLElement {
  return el('time', { datetime: utcIso(seconds), title: utcText(seconds) }, clockText(seconds));
}

/** How long ago, or until, a time is; {@link refreshTimes} keeps it true. */
export function relativeTime(seconds: number): HTMLElement {
  const text = relativeText(seconds, serverNow());
  return el('time', { datetime: utcIso(seconds), title: utcText(seconds), 'data-at': seconds }, text);
}

/** How long something has gone on since a time; {@link refreshTimes} keeps it true. */
export function lastingSince(seconds: number): HTMLElement {
  return el('span', { 'data-since': seconds }, lastingText(seconds, serverNow()));
}

function lastingText(since: number, now: number): string {
  return spanText(Math.max(0, Math.floor(now - since)));
}

/** Writes all relative times of the page anew. */
export function refreshTimes(): void {
  const now = serverNow();
  for (const span of document.querySelectorAll<HTMLElement>('span[data-since]')) {
    const text = lastingText(Number(span.dataset['since']), now);
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

/** A state as a sign, a word, and a colour; the word alone says it. */
export function stateOf(kind: 'good' | 'bad' | 'watch' | 'none', word: string): HTMLElement {
  const sign = { good: '●', bad: '▲', watch: '◆', none: '○' }[kind];
  return el(
    'span',
    { class: `state ${kind}` },
    el('span', { 'aria-hidden': 'true', class: 'sign' }, sign),
    word,
  );
}

/** A sentence of somebody else, in full, with its line ends. */
export function sentence(text: string): HTMLElement {
  return el('p', { class: 'sentence', dir: 'auto' }, text.split('\n').map(visibleText).join('\n'));
}

/** A command to copy. */
export function commandOf(text: string, about: string): HTMLElement {
  const code = el('code', {}, text);
  const copied = el('span', { role: 'status' });
  const copy = button('Copy', () => {
    void copyText(text, code).then((done) => {
      copied.textContent = done ? 'copied' : 'selected: copy it with the keyboard';
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
    // Only pages from this machine, or over TLS, may write to the clipboard.
    getSelection()?.selectAllChildren(code);
    return false;
  }
}

/** Children with a separator between each two. */
export function joined(children: readonly Child[], separator: string): readonly Child[] {
  return children.flatMap((child, at) => (at === 0 ? [child] : [separator, child]));
}
