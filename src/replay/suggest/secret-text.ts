import { shellText } from '../../config/show/shell-text.js';
import { isCredential, redacted } from '../../policy/redact.js';

const KNOWN_SECRET = /^(?:bearer |basic |eyJ|sk[-_]|pk[-_]|gh[a-z]_|github_pat_|xox[a-z]-|AKIA|AIza)/i;
/** A long word with digits, and letters of both cases, is random. A UUID or a host name is not such a word. */
const RANDOM_WORD = /^(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[\w+/=.~-]{20,}$/;

/** Returns whether a value of an entry is a secret, by its key or by its form. */
export function isSecret(key: string, value: string): boolean {
  return isCredential(key) || KNOWN_SECRET.test(value) || RANDOM_WORD.test(value);
}

/** Returns a value of an entry for a comment: redacted if it is a secret, and on one line. */
export function shownEntryValue(key: string, value: string): string {
  return isSecret(key, value) ? redacted(value) : shellText(value);
}
