import { nearest } from '../../nearest-name.js';
import type { DomainPolicy } from '../../policy/policy.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import { quantity } from '../../quantity.js';
import { shellText } from './shell-text.js';

/** Keys of the entries that lead to a rule, from the first level on. */
export type KeyPath = readonly string[];

/** Maximum number of nodes visited, also per path, and of paths returned. Decisions wait during the search. */
const MAX_NODES = 2000;
const MAX_NODES_OF_A_PATH = 200;
const MAX_PATHS = 200;
/** Limits for the search for misspelt keys: entries, paths, characters of a name, and names. */
const MAX_COMPARED_KEYS = 8;
const MAX_COMPARED_PATHS = 64;
const MAX_COMPARED_CHARACTERS = 40;
const MAX_COMPARED_NAMES = 500;
/** Maximum number of entries in a descriptor. For a longer descriptor, the nearest rule is not determined. */
const MAX_KEYS = 32;
const MAX_PATHS_SHOWN = 5;
/**
 * Distances of two keys, where an additional or missing entry counts 1: `MISSPELT_KEY_DISTANCE` for a key that may be
 * misspelt, and `OTHER_KEY_DISTANCE` for another key, which is less likely than a missing entry.
 */
const MISSPELT_KEY_DISTANCE = 0.4;
const OTHER_KEY_DISTANCE = 1.5;

/**
 * Returns the key paths below `root` that have limits or exemptions, shortest first. The search is bounded, so paths of
 * large policies may be missing.
 */
export function rulePaths(root: PolicyNode): readonly KeyPath[] {
  const found: KeyPath[] = [];
  let level: readonly { readonly path: KeyPath; readonly nodes: readonly PolicyNode[] }[] = [
    { path: [], nodes: [root] },
  ];
  let left = MAX_NODES;
  while (level.length > 0 && left > 0) {
    const next: { readonly path: KeyPath; readonly nodes: PolicyNode[] }[] = [];
    for (const { path, nodes } of level) {
      const below = new Map<string, PolicyNode[]>();
      for (const node of nodes) {
        for (const [key, { nodes: children }] of node.levels) {
          // A level may have thousands of keys, and a key thousands of nodes.
          if (left <= 0) break;
          const known = below.get(key) ?? [];
          below.set(key, known);
          const taken = children.slice(0, Math.min(left, MAX_NODES_OF_A_PATH - known.length));
          for (const child of taken) known.push(child);
          left -= Math.max(1, taken.length);
        }
      }
      for (const [key, children] of below) next.push({ path: [...path, key], nodes: children });
    }
    for (const { path, nodes } of next) {
      if (nodes.every(({ rules }) => rules.length === 0)) continue;
      if (found.push(path) === MAX_PATHS) return found;
    }
    level = next;
  }
  return found;
}

/**
 * Returns a sentence, without a full stop, with the reason why a descriptor with these keys matches no rule, and the
 * necessary change. Values are neither known nor shown.
 *
 * @param keys of the descriptor's entries, after `derive`
 * @param paths of the rules of the domain
 * @param policy of the domain, whose rules may all be beyond the search of {@link rulePaths}
 */
export function whyUnmatched(
  keys: KeyPath,
  paths: readonly KeyPath[],
  policy?: Pick<DomainPolicy, 'rules'>,
): string {
  if (keys.length === 0)
    return 'the descriptor has no entries; add an entry, because every rule requires at least one entry';
  if (paths.length === 0) {
    return policy === undefined || policy.rules.length === 0
      ? 'the domain has no rules; add one, or remove the domain'
      : 'the policy is too large to find the nearest rule; compare the entries with the policy';
  }
  if (keys.length > MAX_KEYS) return `the descriptor has ${keys.length} entries, but ${listed(paths)}`;
  if (paths.some((path) => isSame(path, keys))) {
    const place = pathText(keys);
    return `rules exist for ${place}, but none of them matches these values; compare the values with the policy`;
  }
  const { path: near, distance } = nearestPath(keys, paths);
  if (near.length === keys.length && distance < 1) return `did you mean ${pathText(near)}?`;
  const below = paths.find((path) => startsWith(path, keys));
  if (below !== undefined) {
    return (
      `the nearest rule is at ${pathText(below)}: add the ${entryText(below.slice(keys.length))}, or add ` +
      `a limit to ${pathText(keys)}`
    );
  }
  const above = paths.findLast((path) => startsWith(keys, path));
  if (above !== undefined) {
    return (
      `a rule exists for ${pathText(above)}, but only for descriptors without further entries: remove the ` +
      `${entryText(keys.slice(above.length))}, or add a rule for ${pathText(keys)}`
    );
  }
  const sorted = keys.toSorted();
  const turned = paths.find((path) => isSame(path.toSorted(), sorted));
  if (turned !== undefined) {
    return `a rule exists for ${pathText(turned)}: send the same entries in this order`;
  }
  // A distance below the maximum means that at least one key is the same or similar.
  if (distance < Math.max(keys.length, near.length)) return `did you mean ${pathText(near)}?`;
  return listed(paths);
}

/** Returns a question with the most similar of some names; '' if none is similar. */
export function didYouMean(name: string, known: readonly string[]): string {
  const near = nearest(name, known.slice(0, MAX_COMPARED_NAMES));
  return near === undefined ? '' : `did you mean ${shellText(near)}?`;
}

/** Returns the keys as a path, such as `tenant/resource_group`. */
export function pathText(keys: KeyPath): string {
  return keys.map(shellText).join('/');
}

function entryText(keys: KeyPath): string {
  return `${keys.length === 1 ? 'entry' : 'entries'} ${keys.map(shellText).join(' ')}`;
}

function listed(paths: readonly KeyPath[]): string {
  const named = paths.slice(0, MAX_PATHS_SHOWN).map(pathText).join(', ');
  const more =
    paths.length > MAX_PATHS_SHOWN ? `, and ${quantity(paths.length - MAX_PATHS_SHOWN, 'more path')}` : '';
  return `rules exist for ${named}${more}`;
}

function isSame(one: KeyPath, other: KeyPath): boolean {
  return one.length === other.length && startsWith(one, other);
}

function startsWith(path: KeyPath, start: KeyPath): boolean {
  return path.length >= start.length && start.every((key, at) => path[at] === key);
}

/** Returns the path with the smallest distance: the fewest entries to add, remove or rename. */
function nearestPath(
  keys: KeyPath,
  paths: readonly KeyPath[],
): { readonly path: KeyPath; readonly distance: number } {
  let nearest = { path: paths[0] as KeyPath, distance: Number.POSITIVE_INFINITY };
  if (keys.length > MAX_COMPARED_KEYS) return nearest;
  const known = new Map<string, number>();
  for (const path of paths.slice(0, MAX_COMPARED_PATHS)) {
    if (Math.abs(path.length - keys.length) > 1) continue;
    const distance = pathDistance(keys, path, known);
    if (distance < nearest.distance) nearest = { path, distance };
  }
  return nearest;
}

/**
 * Returns the Levenshtein distance of two key paths, in which each misspelt key counts {@link MISSPELT_KEY_DISTANCE}.
 */
function pathDistance(one: KeyPath, other: KeyPath, known: Map<string, number>): number {
  let row = Array.from({ length: other.length + 1 }, (_, i) => i);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const replaced =
        (row[j - 1] as number) + keyDistance(one[i - 1] as string, other[j - 1] as string, known);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[other.length] as number;
}

/** Returns the distance of two keys. `known` caches the distances. */
function keyDistance(one: string, other: string, known: Map<string, number>): number {
  if (one === other) return 0;
  if (Math.max(one.length, other.length) > MAX_COMPARED_CHARACTERS) return OTHER_KEY_DISTANCE;
  const pair = JSON.stringify([one, other]);
  let distance = known.get(pair);
  if (distance === undefined) {
    distance = nearest(one, [other]) === undefined ? OTHER_KEY_DISTANCE : MISSPELT_KEY_DISTANCE;
    known.set(pair, distance);
  }
  return distance;
}
