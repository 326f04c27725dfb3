import { shellText } from '../config/show/shell-text.js';

/** Placeholder for a secret, written by policy/redact.ts. */
const REDACTED = /^\[redacted sha256:[\da-f]{8}\]$/;

/** Formats entries as command-line arguments, quoted where a shell needs it. Long values are cut. */
export function entriesText(entries: readonly { readonly key: string; readonly value: string }[]): string {
  return entries
    .map(({ key, value }) => `${shellText(key)}=${REDACTED.test(value) ? value : shellText(value)}`)
    .join(' ');
}
