import type { Entry } from '../../limiter/entry.js';
import { nearest } from '../../nearest-name.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import { type KeyPath, pathText, rulePaths, whyUnmatched } from './why-unmatched.js';

const MAX_PATHS_SHOWN = 3;
/** Maximum number of nodes searched for rules with other values. */
const MAX_NODES = 10_000;

/**
 * Returns changes that would make a rule apply to entries, after `derive`, that match no rule. `last` is the last node
 * that matched, and `missed` the entry that matched none of its child nodes. The texts have no full stop and never show
 * values of secret keys.
 */
export function remedies(
  policy: CompiledPolicy,
  entries: readonly Entry[],
  last: PolicyNode,
  missed: Entry | undefined,
): readonly string[] {
  const keys = entries.map(({ key }) => key);
  const paths = rulePaths(policy.root);
  const found = [whyUnmatched(keys, paths, policy)];
  const others = rulesAt(policy.root, keys);
  if (others.length > 0) {
    const named = others.slice(0, MAX_PATHS_SHOWN).join(', ');
    found.push(`the rules with these keys are ${named}${others.length > MAX_PATHS_SHOWN ? ' and more' : ''}`);
  }
  const near = missed && nearValue(last, missed);
  if (near !== undefined) found.push(`the nearest value is ${near}: did you mean this value?`);
  const isLeaf = !paths.some((path) => keys.every((key, at) => path[at] === key));
  if (missed === undefined && keys.length > 0 && isLeaf) {
    found.push(`or add a rate_limit to ${pathText(keys)}`);
  }
  if (last.onUnmatched === 'ignore') {
    found.push('if no limit is intended, no change is needed: the policy sets on_unmatched: ignore here');
  }
  return found;
}

/** Returns the label of the exact value on a level that may have been meant instead of the entry's value. */
function nearValue(parent: PolicyNode, { key, value }: Entry): string | undefined {
  const nodes = parent.levels.get(key)?.nodes ?? [];
  const exact = nodes.filter(({ kind, isSecret }) => kind === 'exact' && !isSecret);
  const near = nearest(
    value,
    exact.map((node) => node.value),
  );
  return exact.find((node) => node.value === near)?.label;
}

/** Returns the paths of rules with these keys and other values. */
function rulesAt(root: PolicyNode, keys: KeyPath): readonly string[] {
  let nodes: readonly PolicyNode[] = [root];
  for (const key of keys) {
    nodes = nodes.flatMap((node) => node.levels.get(key)?.nodes ?? []).slice(0, MAX_NODES);
  }
  return nodes.flatMap(({ rules }) => rules.map(({ path }) => path));
}
