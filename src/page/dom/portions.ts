import { countText } from '../text/numbers.js';
import { button } from './element.js';

/** Number of items that are shown at a time. */
const PORTION = 100;

/**
 * Adds items to a list: the first portion immediately, and further portions when the user clicks a button. The button
 * is added to `place`, after the list.
 */
export function addInPortions<T>(
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
    more.textContent = `Show ${countText(Math.min(PORTION, left))} of ${countText(left)} more`;
    if (left === 0) more.remove();
  };
  place.append(more);
  add();
}
