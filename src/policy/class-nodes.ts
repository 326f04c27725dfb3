import type { Entry } from '../limiter/entry.js';
import { isBlocked } from './plans/plan-rules.js';
import { PolicyNode } from './policy-node.js';
import { type ClassSpec, classOf, classRate, keptHits } from './priorities.js';
import { namedRule, type Rule } from './rule.js';

/**
 * Returns the node with the limits of the caller's class, for a node with `priorities`. `entries` has one entry for
 * each node of the path. The result is an ordinary node, which the original keeps for the next request.
 */
export function nodeOfClasses(node: PolicyNode, entries: readonly Entry[]): PolicyNode {
  const value = entries[node.classEntry]?.value;
  // The limits of a list may have different classes.
  const classes = node.rules.map(({ priorities }) => priorities && classOf(priorities, value));
  const id = JSON.stringify(classes.map((one) => one?.name));
  const known = node.classNodes?.get(id);
  if (known !== undefined) return known;
  const { fields, parent, isSecret } = node;
  const rules = node.rules.map((rule, i) => ruleOfClass(rule, classes[i]));
  const made = new PolicyNode({ fields, parent, isSecret, rules });
  node.classNodes ??= new Map();
  node.classNodes.set(id, made);
  return made;
}

/** Returns the limit of a class. The limit of a blocked customer denies every class. */
function ruleOfClass(rule: Rule, one: ClassSpec | undefined): Rule {
  const { rate } = rule;
  if (one === undefined || rate === undefined || isBlocked(rule)) return rule;
  const kept = keptHits(one, rate.reportedLimit);
  return namedRule(rule, classRate(rate, kept), rule, false, { className: one.name, shared: rule });
}
