import { lastOfChain, limitsBefore, type Rule } from '../../policy/rule.js';

/** Returns the limits of a chain (`then`) that contains the rule; only the rule if it is in none. */
export function chainOf(rule: Rule, rules: readonly Rule[]): readonly Rule[] {
  const last = lastOfChain(rules, rules.indexOf(rule));
  return [...limitsBefore(rules, rules.indexOf(last)), last];
}

/** Returns a limit as it decides in its chain, with the settings of the last limit. */
export function asItsChain(rule: Rule): Rule {
  return rule.spillsTo === '' ? rule : { ...rule, spillsTo: '' };
}
