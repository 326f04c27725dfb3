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

/** Pairs that are looked for at most; those of a set are the bits of a number. */
export const MAX_PAIRS = 16;
/** Nodes that are looked at, one several times if it could have several of the pairs. */
export const MAX_LOOKS = 500_000;
/** Nodes that are looked at without a pause. */
const LOOKS_AT_ONCE = 32;
/** Steps ({@link MatchWork}) that are taken at once. */
const STEPS_AT_ONCE = 100_000;

/** A node on the way down. */
interface Visit {
  readonly node: PolicyNode;
  /** The pairs that the way so far has. */
  readonly has: number;
  readonly above: Visit | undefined;
  /** The value that a descriptor has there; undefined where it may have several. */
  readonly value: string | undefined;
  /** Whether all values so far are known that enter the name of a bucket. */
  readonly isNamed: boolean;
}

/**
 * A node with rules at which descriptors may end that have some pairs. There may be thousands of which only the first
 * are shown: all but the node is made when it is asked for.
 */
export class PossibleEnd {
  readonly node: PolicyNode;
  readonly #visit: Visit;

  constructor(visit: Visit) {
    this.node = visit.node;
    this.#visit = visit;
  }

  /** Whether all values are known that enter the name of its buckets. */
  get isNamed(): boolean {
    return this.#visit.isNamed;
  }

  /** One for each node on the way. */
  get entries(): readonly EntryThere[] {
    const entries: EntryThere[] = [];
    for (let at: Visit | undefined = this.#visit; at !== undefined; at = at.above) {
      entries.push(entryAt(at.node, at.value));
    }
    return entries.reverse();
  }

  /** The entries for that name ({@link CompiledPolicy.matchAt}); undefined where it is not known. */
  get naming(): readonly Entry[] | undefined {
    return this.isNamed ? this.entries.map(({ key, value = '' }) => ({ key, value })) : undefined;
  }

  /** The keys whose values enter that name and are not known. */
  get missing(): readonly string[] {
    const { entries } = this;
    return this.node.entering.flatMap((at) => {
      const { key, value } = entries[at] as EntryThere;
      return value === undefined ? key : [];
    });
  }
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
  const walk: Walk = { pairs, all: 2 ** pairs.length - 1, looks: 0 };
  // One for each level of the way, not for each node beside it: so little is kept, however many rules there are.
  const way = [visitsBelow(root, undefined, walk)];
  while (way.length > 0) {
    const next = (way.at(-1) as (typeof way)[0]).next();
    const visit = next.value;
    if (walk.looks > MAX_LOOKS) return false;
    if (next.done === true) way.pop();
    else if (visit === undefined) yield undefined;
    else {
      if (visit.node.levels.size > 0) way.push(visitsBelow(visit.node, visit, walk));
      if (isEnd(visit.node, visit.has, walk)) yield new PossibleEnd(visit);
    }
  }
  return true;
}

/** What holds for all of a walk. */
interface Walk {
  readonly pairs: readonly Entry[];
  /** All of the pairs. */
  readonly all: number;
  /** Nodes that were looked at. */
  looks: number;
}

/** What may come after `above`, in the order of the tree; `undefined` for a pause. */
function* visitsBelow(
  node: PolicyNode,
  above: Visit | undefined,
  walk: Walk,
): Generator<Visit | undefined, void> {
  const has = above?.has ?? 0;
  for (const [key, level] of node.levels) {
    const here = new Set<string>();
    for (const [at, pair] of walk.pairs.entries()) {
      if (pair.key !== key) continue;
      here.add(pair.value);
      const bit = 1 << at;
      if ((has & bit) !== 0) continue;
      walk.looks++;
      const next = yield* find(node, pair);
      if (next !== undefined) yield visitOf(next, has | bit, above, pair.value);
    }
    for (const next of level.nodes) {
      if (++walk.looks % LOOKS_AT_ONCE === 0) yield undefined;
      // Most are at the end of a way, and this is not theirs.
      if (next.levels.size === 0 && !isEnd(next, has, walk)) continue;
      const value = ownValue(next);
      // Whoever has this very pair has it here.
      if (value === undefined || !here.has(value)) yield visitOf(next, has, above, value);
    }
  }
}

function isEnd({ rules }: PolicyNode, has: number, { all }: Walk): boolean {
  return has === all && rules.length > 0;
}

function visitOf(node: PolicyNode, has: number, above: Visit | undefined, value: string | undefined): Visit {
  const isNamed = (above?.isNamed ?? true) && (value !== undefined || !node.valueEnters);
  return { node, has, above, value, isNamed };
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
