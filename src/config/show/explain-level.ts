import type { Entry } from '../../limiter/entry.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import { canonicalAddress } from '../../policy/values/cidr.js';
import { longestBlock } from '../../policy/values/cidr-table.js';
import { firstMatch } from '../../policy/values/regex-list.js';
import { firstNames } from '../../quantity.js';

/** Nodes that were compared to an entry, and the result. */
export interface TriedNode {
  /** Label of the node, or of several nodes with the same result. */
  readonly node: string;
  readonly matched: boolean;
  readonly why: string;
}

/** The reasons for a result, by the kind of the node. */
interface Reasons {
  readonly failed: (value: string) => string;
  readonly matched: (items: readonly string[], value: string) => string;
}

/** The kinds of nodes in the order of {@link Level.find}. */
const KINDS: Readonly<Record<PolicyNode['kind'], Reasons>> = {
  exact: { failed: () => 'the value does not match', matched: () => 'the value matches' },
  cidr: {
    failed: (value) =>
      canonicalAddress(value) === undefined
        ? 'the value is not an IP address'
        : 'no block contains the address',
    matched: (items, value) => `${longestBlock(items, value)} contains the address`,
  },
  pattern: { failed: () => 'the pattern does not match', matched: () => 'the pattern matches' },
  regex: {
    failed: () => 'the regular expression does not match the whole value',
    matched: (items, value) => `${firstMatch(items, value) ?? ''} matches the whole value`,
  },
  any: { failed: () => '', matched: () => 'no value set: matches any value' },
};

/**
 * Returns the child nodes of `parent` with the entry's key, in the order of {@link Level.find}, up to the node `found`.
 */
export function triedNodes(
  parent: PolicyNode,
  { key, value }: Entry,
  found: PolicyNode | undefined,
): readonly TriedNode[] {
  const nodes = parent.levels.get(key)?.nodes ?? [];
  const tried: TriedNode[] = [];
  for (const [kind, { failed, matched }] of Object.entries(KINDS)) {
    const same = nodes.filter((node) => node.kind === kind);
    const isInOrder = kind === 'pattern' || kind === 'regex';
    // An exact value and an address are looked up.
    const before = found?.kind !== kind ? same : isInOrder ? same.slice(0, same.indexOf(found)) : [];
    const groups = kind === 'pattern' ? before.map((node) => [node]) : [before];
    for (const group of groups) {
      if (group.length === 0) continue;
      const names = group.map(({ label }) => label);
      tried.push({ node: firstNames(names, 5), matched: false, why: failed(value) });
    }
    if (found?.kind !== kind) continue;
    const why = matched(found.matcher?.items ?? [], value);
    return [...tried, { node: found.label, matched: true, why }];
  }
  return tried;
}
