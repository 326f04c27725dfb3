import { el } from '../dom/element.js';
import { briefText } from '../text/shown-text.js';

/** Maximum number of characters of a name in a list. */
const MAX_CHARACTERS = 60;

/**
 * Fills a list with domains. The current choice is kept: if that domain is no longer in effect, it is marked, because
 * the form was filled in for it. `all`: the text of an option for all domains.
 */
export function fillDomains(select: HTMLSelectElement, domains: readonly string[], all?: string): void {
  const wanted = JSON.stringify(domains);
  if (select.dataset['domains'] === wanted) return;
  select.dataset['domains'] = wanted;
  const chosen = select.value;
  const options = domains.map((domain) => el('option', { value: domain }, briefText(domain, MAX_CHARACTERS)));
  select.replaceChildren(...(all === undefined ? [] : [el('option', { value: '' }, all)]), ...options);
  if (chosen !== '') chooseDomain(select, chosen);
}

/** Selects a domain, which may not be in effect. */
export function chooseDomain(select: HTMLSelectElement, domain: string): void {
  if (![...select.options].some(({ value }) => value === domain)) {
    select.append(el('option', { value: domain }, `${briefText(domain, MAX_CHARACTERS)} (not in effect)`));
  }
  select.value = domain;
}
