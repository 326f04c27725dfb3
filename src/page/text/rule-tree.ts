import type { DumpedPolicyRule } from './dumped-policy.js';

/** A place in the tree of a policy. */
export interface RuleNode {
  /** What stands in the policy at this level: `tenant`, `resource_group=user-chats`, `path[daily]`. */
  readonly label: string;
  /** Its limit, and candidates beside it; none where only levels below have limits. */
  readonly rules: DumpedPolicyRule[];
  readonly children: Map<string, RuleNode>;
  /** How many rules it and all below it have. */
  count: number;
}

/**
 * The levels of the path of a rule, `tenant/resource_group=user-chats`. Values may hold slashes: `keys` tell the levels
 * apart.
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

/** Where the slash stands behind the level `key`, before one that begins with `next`; -1 where there is none. */
function endOfLevel(rest: string, key: string, next: string): number {
  for (let end = rest.indexOf('/', key.length); end !== -1; end = rest.indexOf('/', end + 1)) {
    if (!rest.startsWith(next, end + 1)) continue;
    const behind = rest[end + 1 + next.length];
    if (behind === undefined || behind === '=' || behind === '/' || behind === '[') return end;
  }
  return -1;
}

function emptyNode(label: string): RuleNode {
  return { label, rules: [], children: new Map(), count: 0 };
}

/** The tree of the rules of a domain, in their order. */
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

/** The rules whose path or name has `text` in it, whatever its case; all of them for ''. */
export function filteredRules(rules: readonly DumpedPolicyRule[], text: string): readonly DumpedPolicyRule[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return rules;
  return rules.filter(({ path, name }) => `${path}\n${name}`.toLowerCase().includes(wanted));
}

/** One name for a rule of a domain, for maps. */
export function ruleKey(domain: string, path: string): string {
  return `${domain.length} ${domain} ${path}`;
}
