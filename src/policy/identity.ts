import { type IdentityPart, MAX_IDENTITY_BYTES, MAX_IDENTITY_PARTS } from '../limiter/control.js';
import type { Entry } from '../limiter/entry.js';
import { sha256Hex } from './names/sha256.js';
import type { DomainPolicy } from './policy.js';
import { isSecretKey, redactedDigest } from './redact.js';

/**
 * Returns the caller that entries identify, before or after `derive`, or an error message if the caller cannot be
 * stored. Secret values become digests.
 */
export function identityOf(policy: DomainPolicy, given: readonly Entry[]): readonly IdentityPart[] | string {
  const entries = policy.derived(given);
  if (typeof entries === 'symbol') return 'deriving entries from these values requires too much work';
  if (entries.length === 0) return 'no entries given: specify at least one, such as tenant=acme';
  const parts: IdentityPart[] = [];
  for (const { key, value } of entries) {
    const secret = isSecretKey(key, policy.secretKeys);
    if (Buffer.byteLength(key) > MAX_IDENTITY_BYTES)
      return `a key is longer than ${MAX_IDENTITY_BYTES} bytes`;
    if (!secret && Buffer.byteLength(value) > MAX_IDENTITY_BYTES) {
      return `the value of ${key} is longer than ${MAX_IDENTITY_BYTES} bytes`;
    }
    const part = { key, value: secret ? sha256Hex(value) : value, secret };
    if (!parts.some((other) => other.key === key && other.value === part.value)) parts.push(part);
  }
  if (parts.length > MAX_IDENTITY_PARTS) {
    return `too many different entries: ${parts.length}; at most ${MAX_IDENTITY_PARTS} are allowed`;
  }
  return parts.sort((a, b) => compare(a.key, b.key) || compare(a.value, b.value));
}

/** Returns a string that is equal for equal identities only. */
export function identityText(identity: readonly IdentityPart[]): string {
  return JSON.stringify(identity.map(({ key, value, secret }) => [key, value, secret ? 1 : 0]));
}

/** Returns an identity with redacted secrets, like {@link redactEntries}. */
export function shownIdentity(identity: readonly IdentityPart[]): readonly Entry[] {
  return identity.map(({ key, value, secret }) => ({ key, value: secret ? redactedDigest(value) : value }));
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
