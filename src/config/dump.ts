import { type Rate, reportedLimit, reportedUnit } from '../limiter/rate.js';
import type { Rule } from '../limiter/rule.js';
import { CompiledPolicy } from './compiled-policy.js';
import type { PolicySet } from './policy.js';
import type { PolicyNode } from './policy-node.js';
import { policyStatName } from './stat-name.js';

/**
 * The rules in force as envoyproxy/ratelimit prints them on `/rlconfig`, a line each, in the order of the files. A token bucket shows
 * its capacity, and the unit that it fills in, if there is one, else UNKNOWN; as does `current_limit` of an answer.
 */
export function dump(policySet: PolicySet): string {
  let text = '';
  for (const policy of policySet.domains.values()) {
    if (!(policy instanceof CompiledPolicy)) continue;
    for (const [{ rate, shadowMode, quotaMode, candidate }, fullKey] of fullKeys(policy)) {
      const mark = candidate ? ' (candidate)' : '';
      text += `${fullKey}${mark}: ${limitText(rate)}, shadow_mode: ${shadowMode}, quota_mode: ${quotaMode}\n`;
    }
  }
  return text;
}

/**
 * The rules of a policy in the order of its files, each with the key that envoyproxy/ratelimit knows it by: domain, keys and the
 * policy's values, joined by dots; a limit of a list with its name or place, too. Secrets are redacted.
 */
export function fullKeys(policy: CompiledPolicy): ReadonlyMap<Rule, string> {
  const nodes = ruleNodes(policy);
  const { domain, secretKeys } = policy;
  return new Map(
    policy.rules.map((rule) => {
      const way = nodes.get(rule)?.way() ?? [];
      return [rule, policyStatName(domain, way, secretKeys) + rule.statSuffix];
    }),
  );
}

/** The node of every rule. */
export function ruleNodes(policy: CompiledPolicy): ReadonlyMap<Rule, PolicyNode> {
  const nodes = new Map<Rule, PolicyNode>();
  collectRules(policy.root, nodes);
  return nodes;
}

function collectRules(node: PolicyNode, nodes: Map<Rule, PolicyNode>): void {
  for (const rule of node.rules) nodes.set(rule, node);
  for (const child of node.children()) collectRules(child, nodes);
}

/** The reference gives an unlimited rule the unit UNKNOWN. */
function limitText(rate: Rate | undefined): string {
  const unit = rate === undefined ? undefined : reportedUnit(rate);
  const limit = rate === undefined ? 0 : reportedLimit(rate);
  return `unit=${unit?.toUpperCase() ?? 'UNKNOWN'} requests_per_unit=${limit}`;
}
