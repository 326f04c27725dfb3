import type { DumpedPlans, DumpedPolicyRule } from './dumped-policy.js';
import { limitWords, phaseWord } from './limit-words.js';
import { countOf } from './numbers.js';
import { briefText } from './shown-text.js';

/** The part of a rule that depends on the plan of a customer. */
export type PlannedRule = Pick<DumpedPolicyRule, 'limit' | 'plan_values' | 'without_row'>;

/** Returns whether a rule depends on the plan of a customer. */
export function isPlanned({ plan_values: values, without_row: standard }: PlannedRule): boolean {
  return values !== null || standard !== null;
}

/** Returns the limit of customers without a row in words. For a rule without values from plans, this is its limit. */
export function standardLimitWords(rule: PlannedRule): string {
  const { limit, without_row: standard } = rule;
  return standard === 'blocked' || standard === 'unlimited' ? standard : limitWords(limit);
}

/**
 * Returns the limit of a rule in a sentence. If the rule depends on the plan, the sentence also names the values of the
 * plan: `100 tokens, 10 more every 1s, for customers without a row. max_tokens is the plan value burst.`
 */
export function fullLimitWords(rule: PlannedRule): string {
  const words = standardLimitWords(rule);
  if (!isPlanned(rule)) return words;
  const values = Object.entries(rule.plan_values ?? {}).map(
    ([field, value]) => `${field} is the plan value ${briefText(value)}`,
  );
  const phase = /^phase (.*)/.exec(rule.without_row ?? '')?.[1];
  return [
    `${words}, for customers without a row${phase === undefined ? '' : `, in the ${phaseWord(phase)} phase`}`,
    ...(values.length === 0 ? [] : [values.join(', ')]),
    // Only a block applies to limits without values from the plan.
    ...(rule.plan_values === null && rule.without_row === 'blocked'
      ? []
      : ['A row can also block a customer, remove the limit, or set its phase.']),
  ].join('. ');
}

/** Returns the source of the rows in words: `by tenant, 5 rows of customers.csv, default plan free`. */
export function planSourceWords({ by, from, rows, default: standard }: DumpedPlans): string {
  return [
    `by ${briefText(by)}`,
    from === null ? countOf(rows, 'plan') : `${countOf(rows, 'row')} of ${briefText(from)}`,
    standard === null ? 'no default plan' : `default plan ${briefText(standard)}`,
  ].join(', ');
}

/** Returns a plan in words: `free: burst 20, calls 30`, or `suspended: blocked`. */
export function planWords(name: string, values: Readonly<Record<string, string>>): string {
  const said = Object.entries(values).map(([value, is]) => (is === 'true' ? value : `${value} ${is}`));
  return `${name}: ${said.join(', ')}`;
}
