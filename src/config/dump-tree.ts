import { CompiledPolicy } from './compiled-policy.js';
import type { DeriveStep } from './derive.js';
import type { DeriveRule } from './derive-rule.js';
import { describeDenied, describeHeaders, describePhase, describeRule, describeSwitch } from './describe.js';
import type { DomainPolicy, PolicySet } from './policy.js';
import type { PolicyNode } from './policy-node.js';
import { isCredential, redacted } from './redact.js';
import { describeMatcher } from './value-matcher.js';

/**
 * The whole configuration as text, for `/rlconfig?format=tree`: every domain with its settings, derive steps and tree. Key tables appear
 * as counts only. `wallMicros` says which phases are in force.
 */
export function dumpTree(policySet: PolicySet, wallMicros: number): string {
  const lines = [`policy version ${policySet.version}`];
  if (policySet.domains.size === 0) lines.push('no domains');
  for (const policy of policySet.domains.values()) lines.push('', ...dumpDomain(policy, wallMicros));
  return `${lines.join('\n')}\n`;
}

function dumpDomain(policy: DomainPolicy, wallMicros: number): string[] {
  const lines = [
    `domain ${policy.domain} (${policy.file})`,
    `  phase: ${describePhase(policy.phase, wallMicros)}`,
    `  algorithm: ${policy.overrideAlgorithm}`,
    `  response headers: ${describeHeaders(policy.responseHeaders)}`,
    `  on store failure: ${policy.onStoreFailure}`,
    `  denied: ${describeDenied(policy.deniedResponse)}`,
    `  decision metadata: ${describeSwitch(policy.decisionMetadata)}`,
  ];
  if (!(policy instanceof CompiledPolicy)) return lines;
  policy.steps.forEach((step, i) => {
    lines.push(`  derive[${i}]: ${describeStep(step)}`);
    if (step.kind !== 'rules') return;
    for (const rule of step.rules) lines.push(`    ${describeDeriveRule(rule, step.sources)}`);
  });
  lines.push('  descriptors:');
  dumpNodes(policy.root, '    ', wallMicros, lines);
  return lines;
}

function dumpNodes(parent: PolicyNode, indent: string, wallMicros: number, lines: string[]): void {
  for (const node of parent.children()) {
    const shared = node.shareThreshold ? ' (one bucket for all)' : '';
    const [only, ...others] = node.rules;
    const rule = only === undefined || others.length > 0 ? '' : `: ${describeRule(only, wallMicros)}`;
    lines.push(`${indent}${node.label}${shared}${rule}`);
    if (node.matcher !== undefined && node.matcher.items.length > 1) {
      lines.push(`${indent}  matches ${describeMatcher(node.matcher)}`);
    }
    if (others.length > 0) {
      for (const one of node.rules) lines.push(`${indent}  - ${describeRule(one, wallMicros)}`);
    }
    dumpNodes(node, `${indent}  `, wallMicros, lines);
  }
}

/** `tenant from api_key: table of 3 API keys`. */
export function describeStep(step: DeriveStep): string {
  if (step.kind === 'table') return `${step.entry} from ${step.source}: table of ${step.size} API keys`;
  return `${step.entry} from ${step.sources.join(', ')}: ${step.rules.length} rules`;
}

/** `method=GET path=/open/{v4,v5}/user-chats -> user-chats`. */
export function describeDeriveRule(rule: DeriveRule, sources: readonly string[]): string {
  const conditions = rule.conditions.map((condition, i) => {
    if (condition === undefined) return '';
    const source = sources[i] as string;
    const text = typeof condition === 'string' ? condition : condition.source;
    return `${source}=${isCredential(source) ? redacted(text) : text}`;
  });
  return `${conditions.filter((text) => text !== '').join(' ') || 'always'} -> ${rule.value}`;
}
