import type { Rule } from '../../policy/rule.js';

/** Number of digits of a {@link firstEditionDigest}: a number with 32 bits to base 36. */
export const FIRST_EDITION_DIGITS = 7;

/** Returns the digest of a rule in tokens of the first edition: FNV-1a with 32 bits of its path and its suffix. */
export function firstEditionDigest({ path, bucketSuffix }: Pick<Rule, 'path' | 'bucketSuffix'>): string {
  const text = `${path} ${bucketSuffix}`;
  let hash = 0x811c_9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x0100_0193);
  return (hash >>> 0).toString(36).padStart(FIRST_EDITION_DIGITS, '0');
}
