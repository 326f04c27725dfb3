import { nearest } from '../../nearest-name.js';
import { quotedText } from './read-question.js';

/** Most domains that a sentence names, and that a mistyped one is compared with. */
const MAX_NAMED = 10;
const MAX_COMPARED = 100;

/** Domains by their names. */
type Domains = ReadonlyMap<string, unknown>;

/** Says that no policy in force has this domain: with the name that may be meant, and with those that are known. */
export function unknownDomain(domains: Domains, domain: string): string {
  const missing = `no policy in force has the domain ${quotedText(domain)}`;
  if (domains.size === 0) return `${missing}: there is none at all`;
  const near = nearest(domain, [...domains.keys()].slice(0, MAX_COMPARED));
  const suggestion = near === undefined ? '' : ` (did you mean ${quotedText(near)}?)`;
  return `${missing}${suggestion}; known are ${domainNames(domains)}`;
}

/** The names of domains, the first ones of many. */
export function domainNames(domains: Domains): string {
  const named = [...domains.keys()].slice(0, MAX_NAMED).map(quotedText);
  return `${named.join(', ')}${domains.size > MAX_NAMED ? `, and ${domains.size - MAX_NAMED} more` : ''}`;
}
