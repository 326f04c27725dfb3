import type { DumpedPolicyRule } from './dumped-policy.js';

/** A node of a policy. */
export interface RuleNode {
  /** Key and value of the node in the policy: `tenant`, `resource_group=user-chats`. */
  readonly label: string;
  /** The rules of this node; empty if only child nodes have limits. */
  readonly rules: DumpedPolicyRule[];
  readonly children: Map<string, RuleNode>;
  /** Number of rules of this node and of all nodes below it. */
  count: number;
}

function emptyNode(label: string): RuleNode {
  return { label, rules: [], children: new Map(), count: 0 };
}

/** Returns the tree of a domain's rules, in their order. */
export function ruleTree(rules: readonly DumpedPolicyRule[]): RuleNode {
  const root = emptyNode('');
  for (const rule of rules) {
    let node = root;
    node.count++;
    for (const level of rule.levels) {
      const child = node.children.get(level) ?? emptyNode(level);
      node.children.set(level, child);
      child.count++;
      node = child;
    }
    node.rules.push(rule);
  }
  return root;
}

/** Returns the rules whose path or name contains `text`, ignoring case. Returns all rules for ''. */
export function filteredRules(rules: readonly DumpedPolicyRule[], text: string): readonly DumpedPolicyRule[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return rules;
  return rules.filter(({ path, name }) => `${path}\n${name}`.toLowerCase().includes(wanted));
}

/** Returns a unique map key for a rule of a domain. */
export function ruleKey(domain: string, path: string): string {
  return `${domain.length} ${domain} ${path}`;
}
