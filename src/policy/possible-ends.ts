import type { Entry } from '../limiter/entry.js';
import type { CompiledPolicy } from './compiled-policy.js';
import { EXCEEDED, MatchWork } from './match-work.js';
import type { PolicyNode } from './policy-node.js';
import { matcherName } from './values/value-matcher.js';

/** What a descriptor that ends at a node has there. */
export interface EntryThere {
  readonly key: string;
  /** Undefined where it may have several. */
  readonly value: string | undefined;
  /** What the node matches, where the value is not known; '' for any. */
  readonly pattern: string;
  /** Whether all values that it matches have one bucket. */
  readonly shared: boolean;
}

/** A node with rules at which descriptors may end that have some pairs. */
export interface PossibleEnd {
  readonly node: PolicyNode;
  /** One for each node on the way. */
  readonly entries: readonly EntryThere[];
  /**
   * The entries for the name of its buckets ({@link CompiledPolicy.matchAt}); undefined where a value that enters it
   * is not known.
   */
  readonly naming: readonly Entry[] | undefined;
  /** The keys whose values enter that name and are not known. */
  readonly missing: readonly string[];
}

/** Pairs that are looked for at most; those of a set are the bits of a number. */
export const MAX_PAIRS = 16;
/** Nodes that are looked at, one several times if it could have several of the pairs. */
export const MAX_VISITS = 500_000;
/** Steps ({@link MatchWork}) that are taken at once. */
const STEPS_AT_ONCE = 100_000;

/** Nodes of one key below one node that are looked at without a pause. */
const NODES_AT_ONCE = 500;

/** A node on the way down, with the pairs that the way so far has. */
interface Visit {
  readonly node: PolicyNode;
  readonly has: number;
  readonly above: Visit | undefined;
  readonly entry: EntryThere;
}

/**
 * The nodes with rules, in the order of the tree, at which descriptors may end that have all of `pairs`, at most
 * {@link MAX_PAIRS}, whatever other entries they have and in whatever order; `undefined` for a pause. A value goes the
 * way that it goes when a request is matched. Returns whether all were found: a policy that has the same keys again and
 * again below each other may have too many.
 */
export function* possibleEnds(
  { root }: Pick<CompiledPolicy, 'root'>,
  pairs: readonly Entry[],
): Generator<PossibleEnd | undefined, boolean> {
  const all = 2 ** pairs.length - 1;
  const open: Visit[] = [];
  yield* pushBelow(root, undefined, 0, pairs, open);
  for (let visits = 0; open.length > 0; visits++) {
    if (visits >= MAX_VISITS) return false;
    const visit = open.pop() as Visit;
    const { node, has } = visit;
    yield has === all && node.rules.length > 0 ? endOf(visit) : undefined;
    yield* pushBelow(node, visit, has, pairs, open);
  }
  return true;
}

/** Puts what may come after `above` on the pile, the first on top. */
function* pushBelow(
  node: PolicyNode,
  above: Visit | undefined,
  has: number,
  pairs: readonly Entry[],
  open: Visit[],
): Generator<undefined, void> {
  const from = open.length;
  for (const [key, level] of node.levels) {
    for (const [at, pair] of pairs.entries()) {
      const bit = 1 << at;
      if (pair.key !== key || (has & bit) !== 0) continue;
      const next = yield* find(node, pair);
      if (next !== undefined)
        open.push({ node: next, has: has | bit, above, entry: entryAt(next, pair.value) });
    }
    for (const [count, next] of level.nodes.entries()) {
      if (count % NODES_AT_ONCE === 0) yield undefined;
      const value = ownValue(next);
      // Whoever has this very pair has it here.
      if (value !== undefined && pairs.some((pair) => pair.key === key && pair.value === value)) continue;
      open.push({ node: next, has, above, entry: entryAt(next, value) });
    }
  }
  reverseFrom(open, from);
}

function* find(node: PolicyNode, { key, value }: Entry): Generator<undefined, PolicyNode | undefined> {
  const work = new MatchWork(0);
  for (let before = -1; ; ) {
    work.left = STEPS_AT_ONCE;
    const found = node.find(key, value, work);
    if (found !== EXCEEDED) return found;
    const progress = work.searches.reduce((sum, search) => sum + 1 + search.progress, work.lasting);
    // No request is matched by what takes so much.
    if (progress <= before) return undefined;
    before = progress;
    yield undefined;
  }
}

/**
 * What the nodes say that the entries of a descriptor meet, as far as the way goes; `undefined` for a pause. As
 * {@link PossibleEnd.entries} of the node at which it ends.
 */
export function* entriesOnWay(
  { root }: Pick<CompiledPolicy, 'root'>,
  entries: readonly Entry[],
): Generator<undefined, readonly EntryThere[]> {
  const there: EntryThere[] = [];
  let node = root;
  for (const entry of entries) {
    const next = yield* find(node, entry);
    if (next === undefined) break;
    there.push(entryAt(next, entry.value));
    node = next;
  }
  return there;
}

function reverseFrom<Item>(items: Item[], from: number): void {
  for (let low = from, high = items.length - 1; low < high; low++, high--) {
    [items[low], items[high]] = [items[high] as Item, items[low] as Item];
  }
}

/** The one value that a node takes, if it takes only one. */
function ownValue({ value, matcher, wildcard }: PolicyNode): string | undefined {
  return matcher === undefined && wildcard === undefined && value !== '' ? value : undefined;
}

/** Whether a node takes many values and has one bucket for them all. */
function isShared({ matcher, wildcard, shareThreshold }: PolicyNode): boolean {
  return shareThreshold && (matcher !== undefined || wildcard !== undefined);
}

function entryAt(node: PolicyNode, value: string | undefined): EntryThere {
  const pattern = node.matcher === undefined ? node.value : matcherName(node.matcher);
  return { key: node.key, value, pattern, shared: isShared(node) };
}

function endOf(visit: Visit): PossibleEnd {
  const { node } = visit;
  const entries: EntryThere[] = [];
  for (let at: Visit | undefined = visit; at !== undefined; at = at.above) entries.push(at.entry);
  entries.reverse();
  const missing = node.entering.flatMap((at) => {
    const { key, value } = entries[at] as EntryThere;
    return value === undefined ? key : [];
  });
  return {
    node,
    entries,
    naming: missing.length > 0 ? undefined : entries.map(({ key, value = '' }) => ({ key, value })),
    missing,
  };
}
