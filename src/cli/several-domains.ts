import { shellText } from '../config/show/shell-text.js';
import { firstNames } from '../quantity.js';

/** Maximum number of domains in a message. */
const MAX_NAMED = 10;

/** Returns the error of a command without `--domain` if the server or the policy has several domains. */
export function severalDomains(owner: 'server' | 'policy', names: readonly string[]): string {
  const named = firstNames(names, MAX_NAMED, shellText);
  return `the ${owner} has several domains; specify one with --domain: ${named}`;
}
