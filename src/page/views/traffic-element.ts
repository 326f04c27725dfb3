import { el } from '../dom/element.js';
import { nameOf } from '../dom/texts.js';
import type { TrafficLabel } from '../text/traffic-label.js';

/** Shows the path of a rule, or a description of other requests in the history. */
export function trafficElement({ path, special }: TrafficLabel): HTMLElement {
  if (path === undefined) return el('em', {}, special);
  const name = nameOf(path);
  return special === undefined
    ? name
    : el('span', {}, name, ' ', el('span', { class: 'note' }, `(${special})`));
}
