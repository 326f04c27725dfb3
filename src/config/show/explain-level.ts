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

/**
 * Returns the child nodes of `parent` with the entry's key, in the order of {@link Level.find}, up to the node `found`.
 */
export function triedNodes(
  parent: PolicyNode,
  entry: Entry,
  found: PolicyNode | undefined,
): readonly TriedNode[] {
  const nodes = parent.levels.get(entry.key)?.nodes ?? [];
  const tried: TriedNode[] = [];
  const exact = nodes.filter(
    (node) => node.value !== '' && node.wildcard === undefined && node.matcher === undefined,
  );
  if (found !== undefined && exact.includes(found)) {
    return [{ node: found.label, matched: true, why: 'the value matches' }];
  }
  const fail = (failed: readonly PolicyNode[], why: string): void => {
    if (failed.length === 0) return;
    const names = failed.map((node) => node.label);
    tried.push({ node: firstNames(names, 5), matched: false, why });
  };
  fail(exact, 'the value does not match');
  const byBlock = nodes.filter((node) => node.matcher?.kind === 'cidr');
  if (found?.matcher?.kind === 'cidr') {
    const why = `${longestBlock(found.matcher.items, entry.value)} contains the address`;
    return [...tried, { node: found.label, matched: true, why }];
  }
  fail(
    byBlock,
    canonicalAddress(entry.value) === undefined
      ? 'the value is not an IP address'
      : 'no block contains the address',
  );
  for (const node of nodes) {
    if (node.wildcard === undefined) continue;
    const matched = node === found;
    const why = matched ? 'the pattern matches' : 'the pattern does not match';
    tried.push({ node: node.label, matched, why });
    if (matched) return tried;
  }
  const byRegex = nodes.filter((node) => node.matcher?.kind === 'regex');
  if (found?.matcher?.kind === 'regex') {
    fail(byRegex.slice(0, byRegex.indexOf(found)), 'the regular expression does not match the whole value');
    const pattern = firstMatch(found.matcher.items, entry.value) ?? '';
    return [...tried, { node: found.label, matched: true, why: `${pattern} matches the whole value` }];
  }
  fail(byRegex, 'the regular expression does not match the whole value');
  if (found !== undefined)
    tried.push({ node: found.label, matched: true, why: 'no value set: matches any value' });
  return tried;
}
