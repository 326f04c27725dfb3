import { type Rate, reportedLimit, reportedUnit } from '../limiter/rate.js';
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
    const nodes = new Map<unknown, PolicyNode>();
    collectRules(policy.root, nodes);
    for (const rule of policy.rules) {
      const node = nodes.get(rule) as PolicyNode;
      const fullKey = policyStatName(policy.domain, node.way(), policy.secretKeys);
      const { shadowMode, quotaMode } = rule;
      text += `${fullKey}: ${limitText(rule.rate)}, shadow_mode: ${shadowMode}, quota_mode: ${quotaMode}\n`;
    }
  }
  return text;
}

/** The reference gives an unlimited rule the unit UNKNOWN. */
function limitText(rate: Rate | undefined): string {
  const unit = rate === undefined ? undefined : reportedUnit(rate);
  const limit = rate === undefined ? 0 : reportedLimit(rate);
  return `unit=${unit?.toUpperCase() ?? 'UNKNOWN'} requests_per_unit=${limit}`;
}

function collectRules(node: PolicyNode, nodes: Map<unknown, PolicyNode>): void {
  if (node.rule !== undefined) nodes.set(node.rule, node);
  for (const child of node.children()) collectRules(child, nodes);
}
