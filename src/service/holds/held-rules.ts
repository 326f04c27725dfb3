import { MAX_SLOTS_PER_ITEM } from '../../limiter/holds/hold.js';
import { settlingRate } from '../../limiter/local-rate.js';
import type { Rate } from '../../limiter/rate.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { textPart, valueInKey } from '../../policy/names/bucket-key.js';
import { settledRate } from '../../policy/plans/plan-rules.js';
import { findRow, type PlanTable, valuesOfRow } from '../../policy/plans/plan-table.js';
import type { Rule } from '../../policy/rule.js';
import { FIRST_EDITION_DIGITS, firstEditionDigest, type TokenHold } from './hold-token.js';

/** A rule whose requests place holds, and its rate for settlements. */
export interface HeldRule {
  readonly rule: Rule;
  readonly rate: Rate;
}

/** The rules of a policy that place holds, by digest, and the common prefix of the names of its buckets. */
interface HeldRules {
  readonly namePart: string;
  readonly rules: ReadonlyMap<string, HeldRule>;
  /** The same rules by their digests of the first edition; undefined until a token of that edition arrives. */
  firstEdition: ReadonlyMap<string, HeldRule> | undefined;
}

/** Freed together with the policy. */
const rulesOf = new WeakMap<CompiledPolicy, HeldRules>();

/** The values of each rule; freed together with the rule. */
const settling = new WeakMap<Rule, HeldRule>();

/** Returns a rule with its rate for settlements. */
export function heldRule(rule: Rule): HeldRule {
  let held = settling.get(rule);
  if (held === undefined) {
    // The use counts in the whole limit, whatever part of it the class of the caller can use.
    held = { rule, rate: settlingRate((rule.shared ?? rule).rate as Rate) };
    settling.set(rule, held);
  }
  return held;
}

function heldRules(policy: CompiledPolicy): HeldRules {
  let known = rulesOf.get(policy);
  if (known === undefined) {
    const held = policy.rules.filter(({ hold }) => hold !== undefined).map(heldRule);
    const rules = new Map(held.map((one) => [one.rule.digest, one]));
    known = { namePart: textPart(policy.domain), rules, firstEdition: undefined };
    rulesOf.set(policy, known);
  }
  return known;
}

function firstEditionRules(known: HeldRules): ReadonlyMap<string, HeldRule> {
  known.firstEdition ??= new Map(
    [...known.rules.values()].map((held) => [firstEditionDigest(held.rule), held]),
  );
  return known.firstEdition;
}

/**
 * Returns the rule of a hold. Returns undefined if the policy no longer contains the rule, if the buckets of the rule
 * have a different shape now, or if the bucket belongs to another domain. Such a hold expires. Also returns undefined
 * if the rule cannot have a bucket with this name, or cannot have such a hold. weir must not send such an item to a
 * store: if the key contained a value of another type, Redis would answer the whole call with an error, including the
 * items of other callers. Stores also cache the place of a bucket by its name alone.
 */
export function heldRuleOf(policy: CompiledPolicy, hold: TokenHold): HeldRule | undefined {
  const { rule, key, suffix } = hold;
  const known = heldRules(policy);
  const { namePart } = known;
  const held = (rule.length === FIRST_EDITION_DIGITS ? firstEditionRules(known) : known.rules).get(rule);
  if (held?.rule.bucketSuffix !== suffix || !key.startsWith(namePart)) return undefined;
  if (held.rate.kind === 'concurrency' && !hasSlots(hold)) return undefined;
  return policy.plans === undefined ? held : heldByCustomer(held, key, policy.plans);
}

/** Returns whether a concurrency limit can have placed this hold. */
function hasSlots({ amount, fullAtMicros, refillMicros = 0 }: TokenHold): boolean {
  return amount <= MAX_SLOTS_PER_ITEM && fullAtMicros === 0 && refillMicros === 0;
}

/**
 * Returns the rule of a hold with the limit of its customer, which bounds the hits that a settlement counts. The name
 * of the bucket contains the customer, unless the customer's name is too long. In that case, the limit is the one for
 * customers without a row.
 */
function heldByCustomer(held: HeldRule, key: string, table: PlanTable): HeldRule {
  if (held.rule.plan === undefined || held.rate.kind === 'concurrency') return held;
  const customer = valueInKey(key, table.by);
  const row = customer === undefined ? -1 : findRow(table, customer);
  const rate = row < 0 ? undefined : settledRate(held.rule, valuesOfRow(table, row));
  return rate === undefined ? held : { ...held, rate: settlingRate(rate) };
}
