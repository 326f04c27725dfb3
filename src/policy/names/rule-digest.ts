import { hash } from 'node:crypto';
import type { NodeFields } from '../spec.js';
import { sharedMatcherPart, textPart } from './bucket-key.js';

/** Length of a {@link ruleDigest}: 128 bits in base64url. */
export const RULE_DIGEST_LENGTH = 22;

/** Returns the place of a node, below another place, as a text that no other node of the domain has. */
export function placeBelow(
  above: string,
  { key, value, matcher }: Pick<NodeFields, 'key' | 'value' | 'matcher'>,
): string {
  return above + textPart(key) + (matcher === undefined ? textPart(value) : sharedMatcherPart(matcher));
}

/**
 * Returns the digest that names a rule with holds in hold tokens, the same in all replicas. `place` is the place of its
 * node; for an item of a list, followed by the part of the limit in names of buckets.
 */
export function ruleDigest(place: string): string {
  return hash('sha256', place, 'base64url').slice(0, RULE_DIGEST_LENGTH);
}
