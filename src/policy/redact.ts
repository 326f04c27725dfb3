import type { Entry } from '../limiter/entry.js';
import { sha256Hex } from './names/sha256.js';

/** What is shown in place of a secret: enough to tell two apart, too little to guess one. */
export function redacted(secret: string): string {
  return redactedDigest(sha256Hex(secret));
}

/** The same of a secret of which only the SHA-256 in hex is known. */
export function redactedDigest(digest: string): string {
  return `[redacted sha256:${digest.slice(0, 8)}]`;
}

/** The value of a policy's node as it may be shown: redacted if it is the very value of a secret; a pattern is none. */
export function shownValue(value: string, isSecret: boolean): string {
  return isSecret && value !== '' && !value.includes('*') ? redacted(value) : value;
}

/** Entry keys that name credentials in every policy, in lower case. */
const CREDENTIALS: ReadonlySet<string> = new Set([
  'api_key',
  'apikey',
  'api-key',
  'x-api-key',
  'authorization',
]);

/** Whether an entry key names a credential in every policy, in any case of letters: its values are secrets. */
export function isCredential(key: string): boolean {
  return CREDENTIALS.has(key.toLowerCase());
}

/** No keys but those of {@link isCredential}. */
export const NO_SECRETS: ReadonlySet<string> = new Set();

/** Whether the values of an entry key are secrets: of a credential, or of one of `secretKeys`. */
export function isSecretKey(key: string, secretKeys: ReadonlySet<string>): boolean {
  return secretKeys.has(key) || isCredential(key);
}

/**
 * Entries as they may be shown in logs and answers: values of `secretKeys` ({@link DomainPolicy.secretKeys}) redacted,
 * and of keys that everybody uses for credentials.
 */
export function redactEntries(entries: readonly Entry[], secretKeys: ReadonlySet<string>): readonly Entry[] {
  const secret = ({ key }: Entry): boolean => isSecretKey(key, secretKeys);
  if (!entries.some(secret)) return entries;
  return entries.map((entry) => (secret(entry) ? { key: entry.key, value: redacted(entry.value) } : entry));
}
