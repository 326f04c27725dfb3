import type { Entry } from '../limiter/entry.js';
import type { DomainPolicy } from '../policy/policy.js';
import { redactEntries } from '../policy/redact.js';

/**
 * The name that envoyproxy/ratelimit's statistics have for a limit override: domain and entries,
 * `domain.key_value.key`. Values of credentials are redacted. `entries` after `derive`.
 */
export function overrideStat(policy: DomainPolicy, entries: readonly Entry[]): string {
  const shown = redactEntries(entries, policy.secretKeys);
  const parts = shown.map(({ key, value }) => (value === '' ? key : `${key}_${value}`));
  return `${policy.domain}.${parts.join('.')}`;
}
