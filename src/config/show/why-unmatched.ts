import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import { nearest } from '../../runtime/nearest-name.js';
import { shellText } from '../../runtime/printable.js';
import { plural } from '../../runtime/texts.js';

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
  policy?: Pick<CompiledPolicy, 'rules'>,
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
  const compared = keys.length > MAX_COMPARED_KEYS ? [] : paths.slice(0, MAX_COMPARED_PATHS);
  const misspelt = compared.find((path) => path.length === keys.length && isAlike(keys, path));
  if (misspelt !== undefined) return `did you mean ${pathText(misspelt)}?`;
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
  const near = compared.find((path) => isAlike(keys, path));
  return near === undefined ? listed(paths) : `did you mean ${pathText(near)}?`;
}

/** Returns a question with the most similar of some names; '' if none is similar. */
export function didYouMean(name: string, known: readonly string[]): string {
  const near = nearest(name, known.slice(0, MAX_COMPARED_NAMES));
  return near === undefined ? '' : `did you mean ${shellText(near)}?`;
}

/** Formats the keys as a path: `tenant/resource_group`. */
export function pathText(keys: KeyPath): string {
  return keys.map(shellText).join('/');
}

function entryText(keys: KeyPath): string {
  return `${keys.length === 1 ? 'entry' : 'entries'} ${keys.map(shellText).join(' ')}`;
}

function listed(paths: readonly KeyPath[]): string {
  const named = paths.slice(0, MAX_PATHS_SHOWN).map(pathText).join(', ');
  const more =
    paths.length > MAX_PATHS_SHOWN ? `, and ${plural(paths.length - MAX_PATHS_SHOWN, 'more path')}` : '';
  return `rules exist for ${named}${more}`;
}

function isSame(one: KeyPath, other: KeyPath): boolean {
  return one.length === other.length && startsWith(one, other);
}

function startsWith(path: KeyPath, start: KeyPath): boolean {
  return path.length >= start.length && start.every((key, at) => path[at] === key);
}

/** Tells whether two key paths are the same, except for misspelt keys and an entry that only the longer one has. */
function isAlike(one: KeyPath, other: KeyPath): boolean {
  if (one.length > other.length) return isAlike(other, one);
  if (one.length === other.length) return one.every((key, at) => isAlikeKey(key, other[at] as string));
  return one.length + 1 === other.length && other.some((_, at) => isAlike(one, other.toSpliced(at, 1)));
}

function isAlikeKey(one: string, other: string): boolean {
  if (one === other) return true;
  return Math.max(one.length, other.length) <= MAX_COMPARED_CHARACTERS && nearest(one, [other]) !== undefined;
}
