import type { Rate } from '../../limiter/rate.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { policyStatName } from '../../policy/names/stat-name.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import type { PolicySet } from '../../policy/policy-set.js';
import type { Rule } from '../../policy/rule.js';

/** So many nodes are looked at in one go. */
const SLICE = 64;

/**
 * The rules in force as envoyproxy/ratelimit prints them on `/rlconfig`, a line each, in the order of the files. A
 * token bucket shows its capacity, and the unit that it fills in, if there is one, else UNKNOWN; as does
 * `current_limit` of an answer. '' is a pause.
 */
export function* dump(policySet: PolicySet): Generator<string> {
  for (const policy of policySet.domains.values()) {
    const nodes = new Map<Rule, PolicyNode>();
    for (const _slice of ruleNodes(policy, nodes)) yield '';
    for (const rule of policy.rules) {
      const { rate, shadowMode, quotaMode, candidate } = rule;
      const mark = candidate ? ' (candidate)' : '';
      const limit = limitText(rate);
      yield `${fullKey(policy, rule, nodes.get(rule))}${mark}: ${limit}, shadow_mode: ${shadowMode}, ` +
        `quota_mode: ${quotaMode}\n`;
    }
  }
}

/**
 * The key that envoyproxy/ratelimit knows a rule by: domain, keys and the policy's values, joined by dots; a limit of a
 * list with its name or place, too. Secrets are redacted.
 */
export function fullKey(policy: CompiledPolicy, rule: Rule, node: PolicyNode | undefined): string {
  return policyStatName(policy.domain, node?.path() ?? [], policy.secretKeys) + rule.statSuffix;
}

/** Puts the node of every rule into `nodes`, in slices. */
export function* ruleNodes(policy: CompiledPolicy, nodes: Map<Rule, PolicyNode>): Generator<void> {
  const open = [policy.root];
  let looked = 0;
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    for (const rule of node.rules) nodes.set(rule, node);
    for (const child of node.children()) {
      open.push(child);
      if (++looked % SLICE === 0) yield;
    }
  }
}

/** The reference gives an unlimited rule the unit UNKNOWN. */
function limitText(rate: Rate | undefined): string {
  const unit = rate === undefined ? undefined : rate.reportedUnit();
  const limit = rate === undefined ? 0 : rate.reportedLimit;
  return `unit=${unit?.toUpperCase() ?? 'UNKNOWN'} requests_per_unit=${limit}`;
}
