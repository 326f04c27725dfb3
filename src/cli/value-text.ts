import { shellText } from '../config/show/shell-text.js';
import { firstNames } from '../runtime/texts.js';
import { CommandError, EXIT } from './io.js';

/** Placeholder for a secret, written by policy/redact.ts. */
const REDACTED = /^\[redacted sha256:[\da-f]{8}\]$/;

/** Formats entries as command-line arguments, quoted where a shell needs it. Long values are cut. */
export function entriesText(entries: readonly { readonly key: string; readonly value: string }[]): string {
  return entries
    .map(({ key, value }) => `${shellText(key)}=${REDACTED.test(value) ? value : shellText(value)}`)
    .join(' ');
}

/** Maximum number of domains in a message. */
const MAX_NAMED = 10;

/** Returns the error of a command without `--domain` if the server or the policy has several domains. */
export function severalDomains(owner: 'server' | 'policy', names: readonly string[]): CommandError {
  const named = firstNames(names, MAX_NAMED, shellText);
  return new CommandError(
    EXIT.USAGE,
    `the ${owner} has several domains; specify one with --domain: ${named}`,
  );
}
