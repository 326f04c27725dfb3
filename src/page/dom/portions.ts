import { countText } from '../text/numbers.js';
import { button } from './element.js';

/** So many items are shown at a time. */
export const PORTION = 100;

/**
 * Adds items to a list, the first portion at once and each further one when it is asked for. The button for that stands
 * in `place`, behind the list.
 */
export function inPortions<T>(
  list: Element,
  place: Element,
  items: readonly T[],
  make: (item: T) => Node,
): void {
  let shown = 0;
  const more = button('', () => {
    const first = list.children.length;
    add();
    const next = list.children[first];
    next?.querySelector<HTMLElement>('summary, button, a')?.focus();
  });
  const add = (): void => {
    const end = Math.min(items.length, shown + PORTION);
    list.append(...items.slice(shown, end).map(make));
    shown = end;
    const left = items.length - shown;
    more.textContent = `Show ${countText(Math.min(PORTION, left))} more of ${countText(left)}`;
    if (left === 0) more.remove();
  };
  place.append(more);
  add();
}
