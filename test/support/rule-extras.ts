import type { DomainPolicy } from '../../src/config/policy.js';
import type { Rule } from '../../src/limiter/rule.js';

/** A policy whose matched rules are changed by `extras`, by {@link Rule.path}. */
export function withRuleExtras(
  policy: DomainPolicy,
  extras: Readonly<Record<string, Partial<Rule>>>,
): DomainPolicy {
  return {
    ...policy,
    match(entries) {
      const match = policy.match(entries);
      const more = match.rule === undefined ? undefined : extras[match.rule.path];
      if (match.rule === undefined || more === undefined) return match;
      const rule = { ...match.rule, ...more };
      return { ...match, rule, statName: rule.statName };
    },
  };
}
