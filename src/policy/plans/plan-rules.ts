import { windowRate } from '../../limiter/fixed-window.js';
import type { Rate } from '../../limiter/rate.js';
import { expectCount } from '../../limiter/rate-algorithm.js';
import { leasedRate } from '../leases.js';
import { type BucketKey, extendedKey, shapePart } from '../names/bucket-key.js';
import {
  fixedPhase,
  type HoldSpec,
  lastOfChain,
  namedRule,
  PHASES,
  type Phase,
  type PhaseSchedule,
  type Rule,
} from '../rule.js';
import { hasNumbers, numbersOf, type PlanRate, planRateSpec, rateOf } from './plan-rate.js';
import { BLOCKED, isSet, PHASE, PLAN_FLAGS, type PlanTable, UNLIMITED, valuesAt } from './plan-table.js';

/** The limit of a blocked customer. It denies every request, and never changes a bucket. */
const NOTHING = windowRate('second', 0, { countsOnlyAllowed: true });

/** The last part of the bucket name of a block, after the shape of the limit. */
const BLOCK_PART = shapePart(NOTHING);

/** For each rule that blocks a customer, the limit that would apply without the block. */
const unblocked = new WeakMap<Rule, Rule>();

/** Returns whether a limit denies every request because the customer is blocked. */
export function isBlocked({ rate }: Pick<Rule, 'rate'>): boolean {
  return rate === NOTHING;
}

/**
 * Returns the limit that would apply to a customer without the block. Settlements and operators use this limit.
 * Undefined if the customer is not blocked.
 */
export function unblockedRule(rule: Rule): Rule | undefined {
  return unblocked.get(rule);
}

/**
 * Returns the bucket name of a block. It differs from the bucket name of the limit, because other customers may share
 * that bucket, and a rate of another shape would replace the state of the bucket within a request.
 */
export function blockedKey(key: BucketKey): string {
  return extendedKey(key, BLOCK_PART).key;
}

/** Whether the limit reads numbers from a plan, or is the block of a customer. */
export function dependsOnRow(rule: Pick<Rule, 'plan' | 'rate'>): boolean {
  return rule.plan !== undefined || isBlocked(rule);
}

/** Returns whether a row of values changes more about a limit than its numbers. */
export function hasFlags(values: Float64Array): boolean {
  return isSet(values, UNLIMITED) || isSet(values, BLOCKED) || !Number.isNaN(values[PHASE]);
}

/**
 * Returns the rules of a node for a row of values. They are ordinary rules with the same names as the rules of the
 * node, so they use the same buckets as long as the shape of the limit is the same. If the row blocks the customer,
 * this applies to all limits of the node. If the row removes limits or sets their phase, this applies only to limits
 * with values from the plan.
 */
export function rulesOfPlan(rules: readonly Rule[], values: Float64Array): readonly Rule[] {
  const planned = rules.map((rule, index) => {
    if (hasPlanValues(rules, index)) return ruleOfPlan(rule, values, phaseOfPlan(rule, values));
    const isDenied = rule.rate !== undefined && isSet(values, BLOCKED);
    return isDenied ? ruleOfPlan(rule, values, rule.phase) : rule;
  });
  const limited = planned.filter(({ rate }) => rate !== undefined);
  // If all limits are removed, a single unlimited rule is enough.
  return limited.length > 0 ? limited : planned.slice(0, 1);
}

/**
 * Returns the effect of the default plan on one of a node's rules, apart from its numbers: `unlimited`, `blocked` or
 * `phase monitoring`. Returns '' if there is none.
 */
export function describeStandard(
  rule: Rule,
  { rules, hasCustomer }: { readonly rules: readonly Rule[]; readonly hasCustomer: boolean },
  table: PlanTable | undefined,
): string {
  if (table === undefined) return '';
  const values = valuesAt(table, 0);
  if (!hasPlanValues(rules, rules.indexOf(rule))) {
    return hasCustomer && rule.rate !== undefined && isSet(values, BLOCKED) ? PLAN_FLAGS[BLOCKED] : '';
  }
  const flag = ([BLOCKED, UNLIMITED] as const).find((one) => isSet(values, one));
  if (flag !== undefined) return PLAN_FLAGS[flag];
  return Number.isNaN(values[PHASE]) ? '' : `phase ${PHASES[values[PHASE] as number]}`;
}

/**
 * Returns whether a limit, or another limit in its chain (`then`), reads numbers from the plan. If a row makes a
 * customer unlimited or blocked, or sets the phase, this applies to the whole chain.
 */
export function hasPlanValues(rules: readonly Rule[], index: number): boolean {
  const last = lastOfChain(rules, index);
  return rules.some(({ plan }, at) => plan !== undefined && lastOfChain(rules, at) === last);
}

function phaseOfPlan({ phase }: Rule, values: Float64Array): PhaseSchedule {
  return Number.isNaN(values[PHASE]) ? phase : fixedPhase(PHASES[values[PHASE] as number] as Phase);
}

function ruleOfPlan(rule: Rule, values: Float64Array, phase: PhaseSchedule): Rule {
  const rate = rateOfPlan(rule, values);
  const shapeOf = (one: Rate | undefined): string => (one === undefined ? '' : shapePart(one));
  const place = rule.bucketSuffix.slice(0, rule.bucketSuffix.length - shapeOf(rule.rate).length);
  const hold = rate === undefined ? undefined : holdOfPlan(rule, values);
  const bucketSuffix = place + shapeOf(rate);
  const made = namedRule({ ...rule, hold, phase }, rate, { ...rule, bucketSuffix });
  return isSet(values, BLOCKED) ? blockOf(made) : made;
}

/**
 * Returns the block of a limit. It has the same names as the limit, so that holds can still be settled, and operators
 * can still change the limit.
 */
function blockOf(rule: Rule): Rule {
  // Denying a blocked customer does not require the store.
  const spec = { ...rule, hold: undefined, onStoreFailure: 'deny' as const, onOver: undefined };
  const made = namedRule(spec, NOTHING, rule, true);
  if (rule.rate !== undefined) unblocked.set(made, rule);
  return made;
}

/** Returns the rate for a row of values, whether or not the row blocks the customer. */
function rateOfPlan(rule: Rule, values: Float64Array): Rate | undefined {
  const { plan, rate, hold } = rule;
  if (isSet(values, UNLIMITED)) return undefined;
  if (plan === undefined || lacksNumbers(plan, values)) return rate;
  const spec = planRateSpec(plan, values, hold !== undefined);
  return rateOf(leasedRate({ ...rule, rate: spec }), true);
}

function holdOfPlan({ plan, hold }: Rule, values: Float64Array): HoldSpec | undefined {
  if (hold?.amount === undefined || plan === undefined || lacksNumbers(plan, values)) return hold;
  const { amount = hold.amount } = numbersOf(plan, values);
  expectCount(amount, 1, 'the amount of a hold');
  return { ...hold, amount };
}

/** Returns whether a row lacks numbers of a limit, which is allowed only if it blocks the customer. */
function lacksNumbers(plan: PlanRate, values: Float64Array): boolean {
  return isSet(values, BLOCKED) && !hasNumbers(plan, values);
}

/**
 * Returns the rate for a row of values that settlements of a limit with holds use. If the row has no rate, for example
 * because it makes the customer unlimited, this is the rate of the rule.
 */
export function settledRate(rule: Rule, values: Float64Array): Rate | undefined {
  return rateOfPlan(rule, values) ?? rule.rate;
}
