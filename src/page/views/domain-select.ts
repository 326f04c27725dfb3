import { el } from '../dom/element.js';
import { briefText } from '../text/shown-text.js';

/** Most characters of a name in a list to choose from. */
const MOST = 60;

/** Makes a list of domains to choose from, and keeps what was chosen. `all`: what is chosen with none of them. */
export function fillDomains(select: HTMLSelectElement, domains: readonly string[], all?: string): void {
  const wanted = JSON.stringify(domains);
  if (select.dataset['domains'] === wanted) return;
  select.dataset['domains'] = wanted;
  const chosen = select.value;
  const options = domains.map((domain) => el('option', { value: domain }, briefText(domain, MOST)));
  select.replaceChildren(...(all === undefined ? [] : [el('option', { value: '' }, all)]), ...options);
  if (domains.includes(chosen)) select.value = chosen;
}
