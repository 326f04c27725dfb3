import { describeFailurePolicy } from '../../limiter/failure-policy.js';
import type { CompiledPolicy, PolicySet } from '../../policy/compiled-policy.js';
import type { DeriveStep } from '../../policy/derive/derive.js';
import type { DeriveRule } from '../../policy/derive/rule-index.js';
import {
  describeDecisionMetadata,
  describeDenied,
  describeHeaders,
  describePhase,
  describePlan,
  describePlans,
  describeRequestHeaders,
  describeRule,
} from '../../policy/describe.js';
import type { PlanTable } from '../../policy/plans/plan-table.js';
import { describeStandard } from '../../policy/plans/planned-rules.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import { isCredential, redacted } from '../../policy/redact.js';
import { describeMatcher } from '../../policy/values/value-matcher.js';
import { quantity } from '../../runtime/texts.js';

/**
 * Returns the whole configuration as text for `/rlconfig?format=tree`: every domain with its settings, derive steps and
 * tree. Key tables appear only as counts. `wallMicros` decides which phases are current.
 */
export function dumpTree(policySet: PolicySet, wallMicros: number): string {
  const domains = [...policySet.domains.values()].map((policy) => dumpDomain(policy, wallMicros));
  return `policy version ${policySet.version}\n${domains.length === 0 ? 'no domains\n' : domains.join('')}`;
}

function dumpDomain(policy: CompiledPolicy, wallMicros: number): string {
  let text = `
domain ${policy.domain} (${policy.file})
  phase: ${describePhase(policy.phase, wallMicros)}
  algorithm: ${policy.overrideAlgorithm}
  response headers: ${describeHeaders(policy.responseHeaders)}
  request headers: ${describeRequestHeaders(policy.requestHeaders)}
  on store failure: ${describeFailurePolicy(policy.onStoreFailure)}
  on unmatched: ${policy.root.onUnmatched}
  denied: ${describeDenied(policy.deniedResponse)}
  decision metadata: ${describeDecisionMetadata(policy.decisionMetadata)}
`;
  for (const [i, step] of policy.steps.entries()) {
    text += `  derive[${i}]: ${describeStep(step)}\n`;
    if (step.kind !== 'rules') continue;
    for (const rule of step.rules) text += `    ${describeDeriveRule(rule, step.sources)}\n`;
  }
  if (policy.plans !== undefined) {
    text += `  plans: ${describePlans(policy.plans)}\n`;
    for (const plan of policy.plans.plans) text += `    ${describePlan(plan)}\n`;
  }
  return `${text}  descriptors:\n${dumpNodes(policy.root, policy.plans, '    ', wallMicros)}`;
}

function dumpNodes(
  parent: PolicyNode,
  plans: PlanTable | undefined,
  indent: string,
  wallMicros: number,
): string {
  let text = '';
  for (const node of parent.children()) {
    const shared = node.shareThreshold ? ' (one bucket for all)' : '';
    const texts = node.rules.map((rule) => {
      const standard = describeStandard(rule, node, plans);
      return `${describeRule(rule, wallMicros)}${standard && `; ${standard} without a row`}`;
    });
    const rule = texts.length === 1 ? `: ${texts[0]}` : '';
    const unmatched = node.onUnmatched === parent.onUnmatched ? '' : ` (on unmatched: ${node.onUnmatched})`;
    text += `${indent}${node.label}${shared}${unmatched}${rule}\n`;
    if (node.matcher !== undefined && node.matcher.items.length > 1) {
      text += `${indent}  matches ${describeMatcher(node.matcher)}\n`;
    }
    if (texts.length > 1) for (const each of texts) text += `${indent}  - ${each}\n`;
    text += dumpNodes(node, plans, `${indent}  `, wallMicros);
  }
  return text;
}

/** Returns a description such as `tenant from api_key: table of 3 API keys`. */
export function describeStep(step: DeriveStep): string {
  if (step.kind === 'table')
    return `${step.entry} from ${step.source}: table of ${quantity(step.size, 'API key')}`;
  return `${step.entry} from ${step.sources.join(', ')}: ${quantity(step.rules.length, 'rule')}`;
}

/** Returns a description such as `method=GET path=/open/{v4,v5}/user-chats -> user-chats`. */
export function describeDeriveRule(rule: DeriveRule, sources: readonly string[]): string {
  const conditions = rule.conditions.map((condition, i) => {
    if (condition === undefined) return '';
    const source = sources[i] as string;
    const text = typeof condition === 'string' ? condition : condition.source;
    return `${source}=${isCredential(source) ? redacted(text) : text}`;
  });
  return `${conditions.filter((text) => text !== '').join(' ') || 'always'} -> ${rule.value}`;
}
