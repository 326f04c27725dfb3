import type { Entry } from '../limiter/rule.js';
import { sha256Hex } from './bucket-key.js';

/** What is shown in place of a secret: enough to tell two apart, too little to guess one. */
export function redacted(secret: string): string {
  return `[redacted sha256:${sha256Hex(secret).slice(0, 8)}]`;
}

/** Entries as they may be shown in logs and answers: values of `secretKeys` redacted ({@link DomainPolicy.secretKeys}). */
export function redactEntries(entries: readonly Entry[], secretKeys: ReadonlySet<string>): readonly Entry[] {
  if (secretKeys.size === 0) return entries;
  return entries.map((entry) =>
    secretKeys.has(entry.key) ? { key: entry.key, value: redacted(entry.value) } : entry,
  );
}
