import type { DumpedPolicyRule } from './dumped-policy.js';

/** A node of a policy. */
export interface RuleNode {
  /** Key and value of the node in the policy: `tenant`, `resource_group=user-chats`, `path[daily]`. */
  readonly label: string;
  /** The rules of this node; empty if only child nodes have limits. */
  readonly rules: DumpedPolicyRule[];
  readonly children: Map<string, RuleNode>;
  /** Number of rules of this node and of all nodes below it. */
  count: number;
}

/**
 * Splits the path of a rule, such as `tenant/resource_group=user-chats`, into levels. Values may contain slashes, so
 * `keys` is needed to find the levels.
 */
export function levelsOfPath(path: string, keys: readonly string[]): readonly string[] {
  const levels: string[] = [];
  let rest = path;
  for (let at = 0; at < keys.length - 1; at++) {
    const end = endOfLevel(rest, keys[at] ?? '', keys[at + 1] ?? '');
    if (end === -1) break;
    levels.push(rest.slice(0, end));
    rest = rest.slice(end + 1);
  }
  return [...levels, rest];
}

/** Returns the index of the slash between the level `key` and the level `next`, or -1 if no slash separates them. */
function endOfLevel(rest: string, key: string, next: string): number {
  for (let end = rest.indexOf('/', key.length); end !== -1; end = rest.indexOf('/', end + 1)) {
    if (!rest.startsWith(next, end + 1)) continue;
    const following = rest[end + 1 + next.length];
    if (following === undefined || following === '=' || following === '/' || following === '[') return end;
  }
  return -1;
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
    for (const level of levelsOfPath(rule.path, rule.keys)) {
      let child = node.children.get(level);
      if (child === undefined) {
        child = emptyNode(level);
        node.children.set(level, child);
      }
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
