import type { LoadedPolicies } from '../../config/files/load-policies.js';
import { type ConfigProblem, formatProblem } from '../../config/yaml/config-problem.js';
import type { DomainPolicy } from '../../policy/policy.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import type { Finding, Findings } from './report.js';

/**
 * Maximum length of a window, in microseconds, that needs no plan for the switch, because it soon starts again anyway.
 */
const MAX_SHORT_WINDOW_MICROS = 60_000_000;

const NOT_LOADED =
  'weir does not load this policy until you correct the errors above. weir loads all other policies.';

/** Reports how weir handles the policy files of an installation of envoyproxy/ratelimit. */
export function findInPolicies({ policySet, errors, warnings }: LoadedPolicies): Findings {
  const decide = [
    ...errors.map(findingOf),
    ...[...new Set(errors.map(({ file }) => file))].map((about) => ({ about, text: NOT_LOADED })),
  ];
  const advice = warnings.map(findingOf);
  const long: string[] = [];
  for (const { domain, rules, root } of policySet.domains.values()) {
    for (const rule of rules)
      if (windowMicros(rule) > MAX_SHORT_WINDOW_MICROS) long.push(`${rule.path} in domain ${domain}`);
    advice.push(...joinedKeys(root, domain));
  }
  if (long.length > 0) advice.push(counterFinding(long));
  return { decide, advice, unused: [] };
}

/** Separates `file:line:column` from the message. */
function findingOf(problem: ConfigProblem): Finding {
  const text = formatProblem(problem);
  const end = /^.*?:\d+:\d+(?=: )/.exec(text)?.[0].length ?? text.indexOf(': ');
  return { about: text.slice(0, end), text: text.slice(end + 2) };
}

/**
 * Returns the length of a rule's window in microseconds; 0 if the rule has no window or allows no requests, because a
 * fresh counter then allows nothing twice.
 */
function windowMicros({ rate }: DomainPolicy['rules'][number]): number {
  return rate?.kind === 'window' && rate.requestsPerUnit > 0 ? rate.lengthMicros : 0;
}

/** Finds rules that also match other entries in envoyproxy/ratelimit. */
function joinedKeys(parent: PolicyNode, domain: string): readonly Finding[] {
  const children = [...parent.children()];
  const keys = [...new Set(children.map(({ key }) => key))];
  return children.flatMap((node) => [
    ...keys
      .filter((key) => node.value === '' && node.key.startsWith(`${key}_`))
      .map((key) => ({
        about: `${domain}: ${node.key}`,
        text:
          'envoyproxy/ratelimit joins keys and values with "_", and therefore also applies this rule to an ' +
          `entry with the key ${key} and the value ${node.key.slice(key.length + 1)}. weir applies the rule only ` +
          `to the key ${node.key}. If Envoy sends the entry with the shorter key, add a rule for that entry.`,
      })),
    ...joinedKeys(node, domain),
  ]);
}

/** Returns a finding about the counters, which start at zero because weir does not read those of the reference. */
function counterFinding(rules: readonly string[]): Finding {
  const shown = rules.slice(0, 3).join(', ');
  const more = rules.length > 3 ? ` and ${rules.length - 3} more` : '';
  return {
    about: 'counters',
    text:
      'all counters start at zero after the switch, so callers can use up to twice their limit in the ' +
      `window in which you switch. These rules have windows longer than a minute: ${shown}${more}. Switch ` +
      'just after such a window begins. Hours begin on the hour, and days at midnight UTC.',
  };
}
