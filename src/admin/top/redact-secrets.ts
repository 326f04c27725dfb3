import type { Entry } from '../../limiter/entry.js';
import { isSecretKey, redacted } from '../../policy/redact.js';

/** Returns the secret keys of a domain in the current policy. */
export type SecretKeyLookup = (domain: string) => ReadonlySet<string>;

const REDACTED = /^\[redacted sha256:[0-9a-f]{8}\]$/;

/** Returns stored entries with secrets redacted. A key may have become a secret since the entries were stored. */
export function redactSecrets(entries: readonly Entry[], secretKeys: ReadonlySet<string>): readonly Entry[] {
  return entries.map(({ key, value }) => {
    const mayBeShown = !isSecretKey(key, secretKeys) || REDACTED.test(value);
    return { key, value: mayBeShown ? value : redacted(value) };
  });
}
