import { el } from '../dom/element.js';
import { briefText } from '../text/shown-text.js';

/** Most characters of a name in a list to choose from. */
const MOST = 60;

/**
 * Makes a list of domains to choose from. What was chosen stays chosen: where it is in force no more it is marked so,
 * as what is typed beside it was meant for it. `all`: what is chosen with none of them.
 */
export function fillDomains(select: HTMLSelectElement, domains: readonly string[], all?: string): void {
  const wanted = JSON.stringify(domains);
  if (select.dataset['domains'] === wanted) return;
  select.dataset['domains'] = wanted;
  const chosen = select.value;
  const options = domains.map((domain) => el('option', { value: domain }, briefText(domain, MOST)));
  select.replaceChildren(...(all === undefined ? [] : [el('option', { value: '' }, all)]), ...options);
  if (chosen !== '') chooseDomain(select, chosen);
}

/** Chooses a domain, which may be one that is not in force. */
export function chooseDomain(select: HTMLSelectElement, domain: string): void {
  if (![...select.options].some(({ value }) => value === domain)) {
    select.append(el('option', { value: domain }, `${briefText(domain, MOST)} (not in force)`));
  }
  select.value = domain;
}
