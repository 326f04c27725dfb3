import { settlingRate } from '../../limiter/local-rate.js';
import type { Rate } from '../../limiter/rate.js';
import { textPart, valueInKey } from '../../policy/names/bucket-key.js';
import { findRow, type PlanTable, valuesOfRow } from '../../policy/plans/plan-table.js';
import { settledRate } from '../../policy/plans/planned-rules.js';
import type { DomainPolicy } from '../../policy/policy.js';
import type { Rule } from '../../policy/rule.js';
import { DIGEST_DIGITS, type TokenHold } from './hold-token.js';

/** A rule whose takes hold, its digest for hold tokens, and its rate for settlements. */
export interface HeldRule {
  readonly rule: Rule;
  readonly digest: string;
  readonly rate: Rate;
}

/** The rules with holds of a policy, by {@link HeldRule.digest}, and the start of the names of its buckets. */
interface HeldRules {
  readonly namePart: string;
  readonly rules: ReadonlyMap<string, HeldRule>;
}

/** Freed together with the policy. */
const rulesOf = new WeakMap<DomainPolicy, HeldRules>();

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
export function digestOf({ path, bucketSuffix }: Pick<Rule, 'path' | 'bucketSuffix'>): string {
  const text = `${path} ${bucketSuffix}`;
  let hash = 0x811c_9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x0100_0193);
  return (hash >>> 0).toString(36).padStart(DIGEST_DIGITS, '0');
}

function heldRules(policy: DomainPolicy): HeldRules {
  let known = rulesOf.get(policy);
  if (known === undefined) {
    const held = policy.rules.filter(({ hold }) => hold !== undefined).map(heldRule);
    known = { namePart: textPart(policy.domain), rules: new Map(held.map((rule) => [rule.digest, rule])) };
    rulesOf.set(policy, known);
  }
  return known;
}

/**
 * Returns the rule of a hold. Undefined if the policy no longer has the rule, if the rule now has buckets of another
 * shape, or if the bucket belongs to another domain. Such a hold expires. Also undefined if the rule has no buckets
 * with such a name. Redis would fail the calls of other callers if the key had a value of another type, and stores
 * cache the place of a bucket by its name alone.
 */
export function heldRuleOf(policy: DomainPolicy, { rule, key, suffix }: TokenHold): HeldRule | undefined {
  const { namePart, rules } = heldRules(policy);
  const held = rules.get(rule);
  if (held?.rule.bucketSuffix !== suffix || !key.startsWith(namePart)) return undefined;
  return policy.plans === undefined ? held : heldByCustomer(held, key, policy.plans);
}

/**
 * Returns the rule of a hold with the limit of its customer, which bounds the hits that a settlement counts. The name
 * of the bucket contains the customer, except long ones: then the limit is that of customers without a row.
 */
function heldByCustomer(held: HeldRule, key: string, table: PlanTable): HeldRule {
  if (held.rule.plan === undefined || held.rate.kind === 'concurrency') return held;
  const customer = valueInKey(key, table.by);
  const row = customer === undefined ? -1 : findRow(table, customer);
  const rate = row < 0 ? undefined : settledRate(held.rule, valuesOfRow(table, row));
  return rate === undefined ? held : { ...held, rate: settlingRate(rate) };
}
