import type { Rate } from '../../limiter/rate.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { policyStatName } from '../../policy/names/stat-name.js';
import type { PlanTable } from '../../policy/plans/plan-table.js';
import { describeStandard } from '../../policy/plans/planned-rules.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import type { PolicySet } from '../../policy/policy-set.js';
import type { Rule } from '../../policy/rule.js';
import { inFileOrder } from '../../policy/spec.js';

/**
 * Returns the rules in effect as envoyproxy/ratelimit prints them on `/rlconfig`: one line each, in file order. A token
 * bucket shows its capacity, and the unit in which it fills or else UNKNOWN, as `current_limit` of an answer does.
 */
export function dump(policySet: PolicySet): string {
  let text = '';
  for (const policy of policySet.domains.values()) {
    for (const [rule, node] of placedRules(policy)) {
      const { rate, shadowMode, quotaMode } = rule;
      const key = `${fullKey(policy, rule, node)}${marksOf(rule, node, policy.plans)}`;
      text += `${key}: ${limitText(rate)}, shadow_mode: ${shadowMode}, quota_mode: ${quotaMode}\n`;
    }
  }
  return text;
}

/** Returns what the lines of envoyproxy/ratelimit do not have: ` (then credits)`; '' without any. */
function marksOf(rule: Rule, node: PolicyNode, plans: PlanTable | undefined): string {
  const { onOver, spillsTo } = rule;
  const standard = describeStandard(rule, node, plans);
  const marks = [
    standard === '' ? '' : `${standard} without a row`,
    onOver === undefined ? '' : 'passes if over',
    spillsTo === '' ? '' : `then ${spillsTo}`,
  ].filter((mark) => mark !== '');
  return marks.length === 0 ? '' : ` (${marks.join(', ')})`;
}

/**
 * Returns the key of a rule in envoyproxy/ratelimit: domain, keys and values of the policy, joined by dots. Limits of a
 * list also have their name or position. Secrets are redacted.
 */
export function fullKey(policy: CompiledPolicy, rule: Rule, node: PolicyNode): string {
  return policyStatName(policy.domain, node.path(), policy.secretKeys) + rule.statSuffix;
}

/** Yields the rules of a policy in file order, each with its node. */
export function* placedRules({ root }: CompiledPolicy): Generator<readonly [Rule, PolicyNode]> {
  for (const { node } of inFileOrder(root, (one) => one.inFileOrder())) {
    for (const rule of node.rules) yield [rule, node];
  }
}

/** Returns the limit as text. The reference gives an unlimited rule the unit UNKNOWN. */
function limitText(rate: Rate | undefined): string {
  const unit = rate === undefined ? undefined : rate.reportedUnit;
  const limit = rate === undefined ? 0 : rate.reportedLimit;
  return `unit=${unit?.toUpperCase() ?? 'UNKNOWN'} requests_per_unit=${limit}`;
}
