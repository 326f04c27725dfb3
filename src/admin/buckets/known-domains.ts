import { nearest } from '../../nearest-name.js';
import { firstNames } from '../../quantity.js';
import { quotedText } from './read-question.js';

/** Maximum number of domains in a message, and of domains that are compared to a misspelled one. */
const MAX_NAMED = 10;
const MAX_COMPARED = 100;

/** Domains by name. */
type Domains = ReadonlyMap<string, unknown>;

/** Returns a message that a domain is unknown, with a similar name and the known domains. */
export function unknownDomain(domains: Domains, domain: string): string {
  const missing = `no policy in effect has the domain ${quotedText(domain)}`;
  if (domains.size === 0) return `${missing}: no domain is loaded`;
  const near = nearest(domain, [...domains.keys()].slice(0, MAX_COMPARED));
  const suggestion = near === undefined ? '' : ` (did you mean ${quotedText(near)}?)`;
  return `${missing}${suggestion}; the loaded domains are ${domainNames(domains)}`;
}

/** Returns the names of the first domains. */
export function domainNames(domains: Domains): string {
  return firstNames([...domains.keys()], MAX_NAMED, quotedText);
}
