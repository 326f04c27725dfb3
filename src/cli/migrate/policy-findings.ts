import type { LoadedPolicies } from '../../config/files/load-policies.js';
import { formatProblem } from '../../config/yaml/config-problem.js';
import type { DomainPolicy } from '../../policy/policy.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import { type Finding, type Findings, mergeFindings } from './findings.js';

/** Windows up to this length start afresh within a breath, so that the switch needs no plan. */
const SHORT_WINDOW_MICROS = 60_000_000;

/** What is better in every installation, and concerns its files or those who call it. */
const EVERYWHERE: readonly Finding[] = [
  {
    about: 'limits that requests carry',
    text:
      'each size has a counter of its own, and their metrics are bounded; there they share one counter, ' +
      'and an unknown unit ends the process.',
  },
  {
    about: 'several descriptors',
    text: 'decided in one step; entries are never taken for one another, whatever their keys and values hold.',
  },
  { about: 'a bad domain', text: 'keeps its last good version while the others are reloaded.' },
  {
    about: 'a stop',
    text: 'is told to callers first: health, a drain delay, then the end of running calls.',
  },
];

/** What the policy files of an installation of the reference mean here. */
export function findInPolicies({ policySet, errors, warnings }: LoadedPolicies): Findings {
  const same: Finding[] = [];
  const better: Finding[] = [];
  const decide: Finding[] = errors.map((problem) => {
    const [about = '', text = ''] = splitProblem(formatProblem(problem));
    return { about, text };
  });
  for (const problem of warnings) {
    const [about = '', text = ''] = splitProblem(formatProblem(problem));
    same.push({ about, text });
  }
  const counters = new Map<string, string[]>();
  const long: string[] = [];
  for (const policy of policySet.domains.values()) {
    const { domain, rules } = policy;
    same.push({
      about: `domain ${domain}`,
      text: `${rules.length} ${rules.length === 1 ? 'rule' : 'rules'}, answered as there.`,
    });
    for (const rule of rules) {
      if (windowMicros(rule) > SHORT_WINDOW_MICROS) long.push(`${domain}: ${rule.path}`);
      if (rule.metadata !== undefined && rule.statName === '') {
        better.push({
          about: `${domain}: ${rule.path}`,
          text: 'keeps its metadata; there detailed_metric and value_to_metric drop it.',
        });
      }
    }
    visit(policy.root, `${domain}_`, domain, counters, better);
  }
  for (const rules of counters.values()) {
    if (rules.length < 2) continue;
    better.push({
      about: rules.join(' and '),
      text: 'share one counter there, as keys and values are joined with "_"; here each has its own.',
    });
  }
  if (policySet.domains.size > 0) addSwitch(long, same);
  better.push(...EVERYWHERE);
  return { same, better: mergeFindings(better), decide };
}

/** `file:line:column` apart from what is said of it. */
function splitProblem(text: string): readonly string[] {
  const end = /^.*?:\d+:\d+(?=: )/.exec(text)?.[0].length ?? text.indexOf(': ');
  return [text.slice(0, end), text.slice(end + 2)];
}

/** Length of a rule's window; 0 where there is none, or nothing that a fresh counter could let through twice. */
function windowMicros({ rate }: DomainPolicy['rules'][number]): number {
  return rate?.kind === 'window' && rate.requestsPerUnit > 0 ? rate.lengthMicros : 0;
}

/**
 * Walks the tree for what the reference takes for one another. `prefix` is what its counters of this level begin with.
 */
function visit(
  parent: PolicyNode,
  prefix: string,
  domain: string,
  counters: Map<string, string[]>,
  better: Finding[],
): void {
  const keys = new Set([...parent.children()].map(({ key }) => key));
  for (const node of parent.children()) {
    const counter = `${prefix}${node.key}_${node.value === '' ? '*' : node.value}_`;
    // The limits of a list are told apart here.
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
      better.push({
        about: `${domain}: ${node.key}`,
        text: `is what there an entry (${key}, ${value}) meets, too; here only an entry of that key does.`,
      });
    }
    visit(node, counter, domain, counters, better);
  }
}

/** The counters of the reference are not taken over. */
function addSwitch(long: readonly string[], same: Finding[]): void {
  if (long.length === 0) {
    same.push({
      about: 'counters',
      text: 'start afresh at the switch; no limit here has a longer window than a minute.',
    });
    return;
  }
  const shown = long.slice(0, 3).join(', ');
  const more = long.length > 3 ? ` and ${long.length - 3} more` : '';
  same.push({
    about: 'counters',
    text:
      'start afresh at the switch, so that a window longer than a minute may let through up to twice its ' +
      `limit once: ${shown}${more}. Switch when that is least harm.`,
  });
}
