import { hash } from 'node:crypto';
import type { Entry } from '../limiter/entry.js';

/** The SHA-256 in lower case hexadecimal digits. Strings are hashed in UTF-8. */
export function sha256Hex(content: string | Uint8Array): string {
  return hash('sha256', content);
}

/** Returns a string to show instead of a secret: long enough to distinguish secrets, and too short to guess them. */
export function redacted(secret: string): string {
  return redactedDigest(sha256Hex(secret));
}

/** Returns the same string for the SHA-256 of a secret, in hexadecimal digits. */
function redactedDigest(digest: string): string {
  return `[redacted sha256:${digest.slice(0, 8)}]`;
}

/** Returns the value of a node as it may be shown: redacted if it is a secret itself; patterns are not. */
export function shownValue(value: string, isSecret: boolean): string {
  return isSecret && value !== '' && !value.includes('*') ? redacted(value) : value;
}

/** Entry keys, in lower case, that name credentials in every policy. */
const CREDENTIALS: ReadonlySet<string> = new Set([
  'api_key',
  'apikey',
  'api-key',
  'x-api-key',
  'authorization',
]);

/** Returns whether an entry key, in any case, names a credential in every policy, so that its values are secrets. */
export function isCredential(key: string): boolean {
  return CREDENTIALS.has(key.toLowerCase());
}

/** The secret keys of a policy that adds none to the credentials in {@link isCredential}. */
export const NO_SECRETS: ReadonlySet<string> = new Set();

/** Returns whether the values of an entry key are secrets: a credential, or one of `secretKeys`. */
export function isSecretKey(key: string, secretKeys: ReadonlySet<string>): boolean {
  return secretKeys.has(key) || isCredential(key);
}

/**
 * Returns entries for logs and answers: values of `secretKeys` ({@link CompiledPolicy.secretKeys}) and of common
 * credentials are redacted.
 */
export function redactEntries(entries: readonly Entry[], secretKeys: ReadonlySet<string>): readonly Entry[] {
  const secret = ({ key }: Entry): boolean => isSecretKey(key, secretKeys);
  if (!entries.some(secret)) return entries;
  return entries.map((entry) => (secret(entry) ? { key: entry.key, value: redacted(entry.value) } : entry));
}
