import type { Entry } from '../limiter/rule.js';
import { sha256Hex } from './bucket-key.js';

/** What is shown in place of a secret: enough to tell two apart, too little to guess one. */
export function redacted(secret: string): string {
  return `[redacted sha256:${sha256Hex(secret).slice(0, 8)}]`;
}

/** Entry keys that name credentials in every policy, in lower case. */
const CREDENTIALS: ReadonlySet<string> = new Set([
  'api_key',
  'apikey',
  'api-key',
  'x-api-key',
  'authorization',
]);

/**
 * Entries as they may be shown in logs and answers: values of `secretKeys` ({@link DomainPolicy.secretKeys}) redacted, and of keys
 * that everybody uses for credentials.
 */
export function redactEntries(entries: readonly Entry[], secretKeys: ReadonlySet<string>): readonly Entry[] {
  const secret = ({ key }: Entry): boolean => secretKeys.has(key) || CREDENTIALS.has(key.toLowerCase());
  if (!entries.some(secret)) return entries;
  return entries.map((entry) => (secret(entry) ? { key: entry.key, value: redacted(entry.value) } : entry));
}
