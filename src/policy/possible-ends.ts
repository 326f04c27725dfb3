import type { Entry } from '../limiter/entry.js';
import type { CompiledPolicy } from './compiled-policy.js';
import type { Level } from './level.js';
import { EXCEEDED, MatchWork } from './match-work.js';
import type { PolicyNode } from './policy-node.js';
import { matcherName } from './values/value-matcher.js';

/** What a descriptor that ends at a node has there. */
export interface NodeEntry {
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
export const MAX_VISITED_NODES = 500_000;
/** Nodes that are looked at without a pause. */
const NODES_PER_SLICE = 32;
/** Steps ({@link MatchWork}) that are taken at once. */
const STEPS_PER_SLICE = 100_000;

/**
 * A node on the way down: one with rules, at which descriptors may end that have some pairs, or one above those. There
 * may be thousands of ends of which only the first are shown, so that this is all that is made of each: what else is
 * known of it is made when it is asked for.
 */
export class PossibleEnd {
  readonly node: PolicyNode;
  /** Whether all values are known that enter the name of its buckets. */
  readonly isNamed: boolean;
  /** The pairs that the way so far has. */
  readonly pairBits: number;
  readonly above: PossibleEnd | undefined;
  /** The value that a descriptor has there; undefined where it may have several. */
  readonly value: string | undefined;

  constructor(node: PolicyNode, has: number, above: PossibleEnd | undefined, value: string | undefined) {
    this.node = node;
    this.isNamed = (above?.isNamed ?? true) && (value !== undefined || !node.isValueInBucket);
    this.pairBits = has;
    this.above = above;
    this.value = value;
  }

  /** One for each node on the way. */
  get entries(): readonly NodeEntry[] {
    const entries: NodeEntry[] = [];
    for (let at: PossibleEnd | undefined = this; at !== undefined; at = at.above) {
      entries.push(entryAt(at.node, at.value));
    }
    return entries.reverse();
  }

  /** The keys whose values enter the name of its buckets and are not known. */
  get unknownKeys(): readonly string[] {
    if (this.isNamed) return [];
    const { entries } = this;
    return this.node.bucketEntries.flatMap((at) => {
      const { key, value } = entries[at] as NodeEntry;
      return value === undefined ? key : [];
    });
  }
}

/** What may come below a node, as far as it was looked at. */
interface TreeCursor {
  readonly node: PolicyNode;
  /** Undefined at the root. */
  readonly above: PossibleEnd | undefined;
  readonly levels: Iterator<[string, Level<PolicyNode>]>;
  key: string;
  nodes: readonly PolicyNode[];
  /** The values of the pairs with that key: whoever has one goes the way of the pair. */
  values: Set<string>;
  /** How many of the pairs were looked at, and of the nodes after them. */
  visitedPairs: number;
  visitedNodes: number;
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
  let visited = 0;
  // One for each level of the way, not for each node beside it: so little is kept, however many rules there are.
  const stack = [cursorAt(root, undefined, pairs.length)];
  for (let at = stack.at(-1); at !== undefined; at = stack.at(-1)) {
    const has = at.above?.pairBits ?? 0;
    let end: PossibleEnd | undefined;
    if (at.visitedPairs < pairs.length) {
      const bit = 1 << at.visitedPairs;
      const pair = pairs[at.visitedPairs++] as Entry;
      if (pair.key !== at.key) continue;
      at.values.add(pair.value);
      if ((has & bit) !== 0) continue;
      if (++visited > MAX_VISITED_NODES) return false;
      const node = yield* find(at.node, pair);
      if (node !== undefined) end = new PossibleEnd(node, has | bit, at.above, pair.value);
    } else if (at.visitedNodes < at.nodes.length) {
      const node = at.nodes[at.visitedNodes++] as PolicyNode;
      if (++visited % NODES_PER_SLICE === 0) yield undefined;
      if (visited > MAX_VISITED_NODES) return false;
      // Most are at the end of a way, and this is not theirs.
      if (node.levels.size === 0 && !isEnd(node, has, all)) continue;
      const value = ownValue(node);
      // Whoever has this very pair has it here.
      if (value === undefined || !at.values.has(value)) end = new PossibleEnd(node, has, at.above, value);
    } else {
      const level = at.levels.next();
      if (level.done === true) stack.pop();
      else {
        at.key = level.value[0];
        at.nodes = level.value[1].nodes;
        at.values = new Set();
        at.visitedPairs = 0;
        at.visitedNodes = 0;
      }
      continue;
    }
    if (end === undefined) continue;
    if (end.node.levels.size > 0) stack.push(cursorAt(end.node, end, pairs.length));
    if (isEnd(end.node, end.pairBits, all)) yield end;
  }
  return true;
}

/** Nothing was looked at yet, so that the first level comes next. */
function cursorAt(node: PolicyNode, above: PossibleEnd | undefined, pairs: number): TreeCursor {
  const levels = node.levels.entries();
  return { node, above, levels, key: '', nodes: [], values: new Set(), visitedPairs: pairs, visitedNodes: 0 };
}

function isEnd({ rules }: PolicyNode, has: number, all: number): boolean {
  return has === all && rules.length > 0;
}

function* find(node: PolicyNode, { key, value }: Entry): Generator<undefined, PolicyNode | undefined> {
  const work = new MatchWork(0);
  for (let before = -1; ; ) {
    work.remaining = STEPS_PER_SLICE;
    const found = node.find(key, value, work);
    if (found !== EXCEEDED) return found;
    const progress = work.searches.reduce((sum, search) => sum + 1 + search.progress, work.oneTime);
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
export function* matchedEntries(
  { root }: Pick<CompiledPolicy, 'root'>,
  entries: readonly Entry[],
): Generator<undefined, readonly NodeEntry[]> {
  const matched: NodeEntry[] = [];
  let node = root;
  for (const entry of entries) {
    const next = yield* find(node, entry);
    if (next === undefined) break;
    matched.push(entryAt(next, entry.value));
    node = next;
  }
  return matched;
}

/** The one value that a node takes, if it takes only one. */
function ownValue({ value, matcher, wildcard }: PolicyNode): string | undefined {
  return matcher === undefined && wildcard === undefined && value !== '' ? value : undefined;
}

/** Whether a node takes many values and has one bucket for them all. */
function isShared({ matcher, wildcard, shareThreshold }: PolicyNode): boolean {
  return shareThreshold && (matcher !== undefined || wildcard !== undefined);
}

function entryAt(node: PolicyNode, value: string | undefined): NodeEntry {
  const pattern = node.matcher === undefined ? node.value : matcherName(node.matcher);
  return { key: node.key, value, pattern, shared: isShared(node) };
}
