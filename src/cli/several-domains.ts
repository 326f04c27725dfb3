import { shellText } from '../config/show/shell-text.js';

/** Maximum number of domains in a message. */
const MAX_NAMED = 10;

/** Returns the error of a command without `--domain` if the server or the policy has several domains. */
export function severalDomains(owner: 'server' | 'policy', names: readonly string[]): string {
  const more = names.length > MAX_NAMED ? `, and ${names.length - MAX_NAMED} more` : '';
  const named = names.slice(0, MAX_NAMED).map(shellText).join(', ');
  return `the ${owner} has several domains; specify one with --domain: ${named}${more}`;
}
