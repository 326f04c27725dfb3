import type { Entry } from '../../limiter/entry.js';
import { isSecretKey, redacted } from '../../policy/redact.js';

/** Says which keys are secrets in a domain, by the policy that is in force. */
export type SecretKeyLookup = (domain: string) => ReadonlySet<string>;

const REDACTED = /^\[redacted sha256:[0-9a-f]{8}\]$/;

/** Entries that were kept, as they may be shown now: a key may have become one of secrets since. */
export function redactSecrets(entries: readonly Entry[], secretKeys: ReadonlySet<string>): readonly Entry[] {
  return entries.map(({ key, value }) => {
    const mayBeShown = !isSecretKey(key, secretKeys) || REDACTED.test(value);
    return { key, value: mayBeShown ? value : redacted(value) };
  });
}
