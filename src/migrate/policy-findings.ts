import type { LoadedPolicies } from '../config/files/load-policies.js';
import { formatProblem } from '../config/yaml/config-problem.js';
import type { DomainPolicy } from '../policy/policy.js';
import type { PolicyNode } from '../policy/policy-node.js';
import { quantity } from '../quantity.js';
import { type Finding, type Findings, mergeFindings } from './findings.js';
import type { judgeByReference } from './read/reference-verdicts.js';

/**
 * Maximum length of a window, in microseconds, that needs no plan for the switch, because it soon starts again anyway.
 */
const MAX_SHORT_WINDOW_MICROS = 60_000_000;

const NOT_LOADED =
  'weir does not load this policy until you correct the errors above. weir loads all other policies.';
const REFERENCE_REJECTS = `${NOT_LOADED} envoyproxy/ratelimit also rejects this policy, and then loads no policy.`;
const REFERENCE_ACCEPTS = `${NOT_LOADED} envoyproxy/ratelimit accepts this policy.`;

/** Findings that apply to every installation. */
const GENERAL_FINDINGS: readonly Finding[] = [
  {
    about: 'policy files',
    text: 'if a file is invalid, its domains keep their previous version, and weir reloads all other domains.',
  },
  {
    about: 'requests',
    text:
      'weir takes hits from all limits of a request or from none, so a denied request does not use up ' +
      'other limits.',
  },
  { about: 'shutdown', text: 'weir answers all current calls before it exits.' },
  { about: 'other differences', text: 'docs/migrate.md in the weir repository lists all differences.' },
];

/** Reports how weir handles the policy files of an installation of envoyproxy/ratelimit. */
export function findInPolicies(
  { policySet, errors, warnings }: LoadedPolicies,
  { rejected, accepted }: ReturnType<typeof judgeByReference>,
): Findings {
  const advice: Finding[] = [];
  const same: Finding[] = [];
  const better: Finding[] = [];
  const decide: Finding[] = errors.map((problem) => {
    const [about = '', text = ''] = splitProblem(formatProblem(problem));
    return { about, text };
  });
  for (const about of rejected) decide.push({ about, text: REFERENCE_REJECTS });
  for (const about of accepted) decide.push({ about, text: REFERENCE_ACCEPTS });
  for (const problem of warnings) {
    const [about = '', text = ''] = splitProblem(formatProblem(problem));
    advice.push({ about, text });
  }
  const counters = new Map<string, string[]>();
  const long: string[] = [];
  for (const policy of policySet.domains.values()) {
    const { domain, rules } = policy;
    const count = quantity(rules.length, 'rule');
    same.push({
      about: `domain ${domain}`,
      text: `weir makes the same decisions as envoyproxy/ratelimit for ${count}.`,
    });
    for (const rule of rules) {
      if (windowMicros(rule) > MAX_SHORT_WINDOW_MICROS) long.push(`${rule.path} in domain ${domain}`);
      if (rule.metadata !== undefined && rule.statName === '') {
        better.push({
          about: `${domain}: ${rule.path}`,
          text:
            'weir keeps the metadata of rules with detailed_metric or value_to_metric. envoyproxy/ratelimit ' +
            'drops this metadata.',
        });
      }
    }
    findJoinedKeys(policy.root, `${domain}_`, domain, counters, advice);
  }
  for (const rules of counters.values()) {
    if (rules.length < 2) continue;
    better.push({
      about: rules.join(' and '),
      text:
        'these rules share a counter in envoyproxy/ratelimit, which joins keys and values with "_". In weir, each ' +
        'rule has its own counter.',
    });
  }
  if (policySet.domains.size > 0) addCounterFinding(long, advice, same);
  better.push(...GENERAL_FINDINGS);
  return { decide, advice, same, better: mergeFindings(better), unused: [] };
}

/** Splits `file:line:column` from the message. */
function splitProblem(text: string): readonly string[] {
  const end = /^.*?:\d+:\d+(?=: )/.exec(text)?.[0].length ?? text.indexOf(': ');
  return [text.slice(0, end), text.slice(end + 2)];
}

/**
 * Returns the length of a rule's window in microseconds; 0 if the rule has no window or allows no requests, because a
 * fresh counter then allows nothing twice.
 */
function windowMicros({ rate }: DomainPolicy['rules'][number]): number {
  return rate?.kind === 'window' && rate.requestsPerUnit > 0 ? rate.lengthMicros : 0;
}

/**
 * Finds rules that share a counter in envoyproxy/ratelimit, and rules that also match other entries there. `prefix` is
 * the start of the reference's counter names at this level.
 */
function findJoinedKeys(
  parent: PolicyNode,
  prefix: string,
  domain: string,
  counters: Map<string, string[]>,
  advice: Finding[],
): void {
  const keys = new Set([...parent.children()].map(({ key }) => key));
  for (const node of parent.children()) {
    const counter = `${prefix}${node.key}_${node.value === '' ? '*' : node.value}_`;
    // The limits of a list count once, because weir keeps them apart.
    const live = node.rules.find(({ candidate }) => !candidate);
    if (live !== undefined) {
      const rules = counters.get(counter);
      const name = `${domain}: ${live.path}`;
      if (rules === undefined) counters.set(counter, [name]);
      else rules.push(name);
    }
    for (const key of keys) {
      if (node.value !== '' || !node.key.startsWith(`${key}_`)) continue;
      const value = node.key.slice(key.length + 1);
      advice.push({
        about: `${domain}: ${node.key}`,
        text:
          'envoyproxy/ratelimit joins keys and values with "_", and therefore also applies this rule to ' +
          `an entry with the key ${key} and the value ${value}. weir applies the rule only to the key ` +
          `${node.key}. If Envoy sends the entry with the shorter key, add a rule for that entry.`,
      });
    }
    findJoinedKeys(node, counter, domain, counters, advice);
  }
}

/** Adds a finding about the counters, which start at zero because weir does not read those of the reference. */
function addCounterFinding(long: readonly string[], advice: Finding[], same: Finding[]): void {
  if (long.length === 0) {
    same.push({
      about: 'counters',
      text:
        'all counters start at zero after the switch. No window is longer than a minute, so the effect ' +
        'lasts at most a minute.',
    });
    return;
  }
  const shown = long.slice(0, 3).join(', ');
  const more = long.length > 3 ? ` and ${long.length - 3} more` : '';
  advice.push({
    about: 'counters',
    text:
      'all counters start at zero after the switch, so callers can use up to twice their limit in the ' +
      `window in which you switch. These rules have windows longer than a minute: ${shown}${more}. Switch ` +
      'just after such a window begins. Hours begin on the hour, and days at midnight UTC.',
  });
}
