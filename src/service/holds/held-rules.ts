import { settlingRate } from '../../limiter/local-rate.js';
import type { Rate } from '../../limiter/rate.js';
import { divideKey, textPart } from '../../policy/names/bucket-key.js';
import type { DomainPolicy } from '../../policy/policy.js';
import type { Rule } from '../../policy/rule.js';
import type { TokenHold } from './hold-token.js';

/** A rule whose takes hold, its digest for hold tokens, and its rate for settlements. */
export interface HeldRule {
  readonly rule: Rule;
  readonly digest: number;
  readonly rate: Rate;
}

/** The rules with holds of each policy, by {@link HeldRule.digest}; freed together with the policy. */
const rulesOf = new WeakMap<DomainPolicy, ReadonlyMap<number, HeldRule>>();

/** The values of each rule; freed together with the rule. */
const settling = new WeakMap<Rule, HeldRule>();

/** Returns a rule with its digest and its rate for settlements. */
export function heldRule(rule: Rule): HeldRule {
  let held = settling.get(rule);
  if (held === undefined) {
    held = { rule, digest: digestOf(rule), rate: settlingRate(rule.rate as Rate) };
    settling.set(rule, held);
  }
  return held;
}

/**
 * Returns a digest of a rule's place and of the shape of its buckets, the same in all replicas: FNV-1a with 32 bits.
 */
export function digestOf({ path, bucketSuffix }: Pick<Rule, 'path' | 'bucketSuffix'>): number {
  const text = `${path} ${bucketSuffix}`;
  let hash = 0x811c_9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x0100_0193);
  return hash >>> 0;
}

function heldRules(policy: DomainPolicy): ReadonlyMap<number, HeldRule> {
  let rules = rulesOf.get(policy);
  if (rules === undefined) {
    const held = policy.rules.filter(({ hold }) => hold !== undefined).map(heldRule);
    rules = new Map(held.map((rule) => [rule.digest, rule]));
    rulesOf.set(policy, rules);
  }
  return rules;
}

/**
 * Returns the rule of a hold. Undefined if the policy no longer has the rule, if the rule now has buckets of another
 * shape, or if the bucket belongs to another domain. Such a hold expires. Also undefined if the rule has no buckets
 * with such a name. Redis would fail the calls of other callers if the key had a value of another type, and stores
 * cache the place of a bucket by its name alone.
 */
export function heldRuleOf(policy: DomainPolicy, { rule, key, tagLength }: TokenHold): HeldRule | undefined {
  if (!key.startsWith(textPart(policy.domain))) return undefined;
  const held = heldRules(policy).get(rule);
  const parts = divideKey(key);
  const isNamed = parts?.tagLength === tagLength && parts.suffix === held?.rule.bucketSuffix;
  return isNamed ? held : undefined;
}
