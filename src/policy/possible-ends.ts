import type { Entry } from '../limiter/entry.js';
import type { CompiledPolicy } from './compiled-policy.js';
import type { Level } from './level.js';
import { DEFAULT_MAX_MATCH_WORK, DEFAULT_MAX_REGEX_VALUE_BYTES, MatchWork } from './match-work.js';
import type { PolicyNode } from './policy-node.js';
import { matcherName } from './values/value-matcher.js';

/** The entry of a descriptor at a node. */
export interface NodeEntry {
  readonly key: string;
  /** Undefined if several values are possible. */
  readonly value: string | undefined;
  /** Pattern of the node, if the value is unknown; '' for any value. */
  readonly pattern: string;
  /** Whether all values that the node matches share one bucket. */
  readonly shared: boolean;
}

/** Maximum number of pairs, because a set of pairs is a bit mask. */
export const MAX_PAIRS = 16;
/** Maximum number of visited nodes; a node that could match several pairs counts several times. */
export const MAX_VISITED_NODES = 500_000;
/** Number of nodes that are visited without a pause. */
const NODES_PER_SLICE = 32;

/**
 * A node on the path to an end: one with rules, at which descriptors with the given pairs may end, or one of its
 * ancestors. Only the first of possibly thousands of ends are shown, so everything else about an end is
 * computed on demand.
 */
export class PossibleEnd {
  readonly node: PolicyNode;
  /** Whether all values that are part of the bucket's name are known. */
  readonly isNamed: boolean;
  /** Bit mask of the pairs on the path so far. */
  readonly pairBits: number;
  readonly above: PossibleEnd | undefined;
  /** The value of the descriptor at this node; undefined if several are possible. */
  readonly value: string | undefined;

  constructor(node: PolicyNode, has: number, above: PossibleEnd | undefined, value: string | undefined) {
    this.node = node;
    this.isNamed = (above?.isNamed ?? true) && (value !== undefined || !node.isValueInBucket);
    this.pairBits = has;
    this.above = above;
    this.value = value;
  }

  /** One entry for each node of the path. */
  get entries(): readonly NodeEntry[] {
    const entries: NodeEntry[] = [];
    for (let at: PossibleEnd | undefined = this; at !== undefined; at = at.above) {
      entries.push(entryAt(at.node, at.value));
    }
    return entries.reverse();
  }

  /** Keys whose values are part of the bucket's name and unknown. */
  get unknownKeys(): readonly string[] {
    if (this.isNamed) return [];
    const { entries } = this;
    return this.node.bucketEntries.flatMap((at) => {
      const { key, value } = entries[at] as NodeEntry;
      return value === undefined ? key : [];
    });
  }
}

/** The position of a search below a node. */
interface TreeCursor {
  readonly node: PolicyNode;
  /** Undefined for the root. */
  readonly above: PossibleEnd | undefined;
  readonly levels: Iterator<[string, Level<PolicyNode>]>;
  key: string;
  nodes: readonly PolicyNode[];
  /** Values of the pairs with that key; descriptors with one of them follow that pair. */
  values: Set<string>;
  /** Number of visited pairs, and of the nodes visited after them. */
  visitedPairs: number;
  visitedNodes: number;
}

/**
 * Yields the nodes with rules, in tree order, at which descriptors with all of `pairs` (at most {@link MAX_PAIRS}) may
 * end, whatever their other entries and order; yields `undefined` for a pause. Values match as in requests. Returns
 * whether the search is complete: a policy that repeats keys on many levels may have too many nodes.
 */
export function* possibleEnds(
  { root }: Pick<CompiledPolicy, 'root'>,
  pairs: readonly Entry[],
): Generator<PossibleEnd | undefined, boolean> {
  const all = 2 ** pairs.length - 1;
  const work = workOfSlice();
  let visited = 0;
  // Holds one cursor for each level of the path, so that memory does not depend on the number of rules.
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
      const node = yield* find(at.node, pair, work);
      if (node !== undefined) end = new PossibleEnd(node, has | bit, at.above, pair.value);
    } else if (at.visitedNodes < at.nodes.length) {
      const node = at.nodes[at.visitedNodes++] as PolicyNode;
      if (++visited % NODES_PER_SLICE === 0) yield undefined;
      if (visited > MAX_VISITED_NODES) return false;
      // Most nodes are leaves without a complete set of pairs.
      if (node.levels.size === 0 && !isEnd(node, has, all)) continue;
      const value = ownValue(node);
      // A descriptor with this pair matches it here.
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

/** Returns a cursor before the first level. */
function cursorAt(node: PolicyNode, above: PossibleEnd | undefined, pairs: number): TreeCursor {
  const levels = node.levels.entries();
  return { node, above, levels, key: '', nodes: [], values: new Set(), visitedPairs: pairs, visitedNodes: 0 };
}

function isEnd({ rules }: PolicyNode, has: number, all: number): boolean {
  return has === all && rules.length > 0;
}

/** Returns the child for a pair; yields for a pause when `work` is used up. */
function* find(
  node: PolicyNode,
  { key, value }: Entry,
  work: MatchWork,
): Generator<undefined, PolicyNode | undefined> {
  const found = node.find(key, value, work);
  if (work.exceeded === undefined) return found;
  yield undefined;
  work.reset();
  const again = node.find(key, value, work);
  // A value that takes more work than a request may take matches in no request.
  return work.exceeded === undefined ? again : undefined;
}

/** Returns the bounds of a request, which are also the work between two pauses. */
function workOfSlice(): MatchWork {
  return new MatchWork(DEFAULT_MAX_MATCH_WORK, DEFAULT_MAX_REGEX_VALUE_BYTES);
}

/**
 * Yields `undefined` for a pause. Returns the {@link PossibleEnd.entries} of the path that the entries of a descriptor
 * match, as far as it goes.
 */
export function* matchedEntries(
  { root }: Pick<CompiledPolicy, 'root'>,
  entries: readonly Entry[],
): Generator<undefined, readonly NodeEntry[]> {
  const matched: NodeEntry[] = [];
  const work = workOfSlice();
  let node = root;
  for (const entry of entries) {
    const next = yield* find(node, entry, work);
    if (next === undefined) break;
    matched.push(entryAt(next, entry.value));
    node = next;
  }
  return matched;
}

/** Returns the value of a node that matches only one. */
function ownValue({ value, matcher, wildcard }: PolicyNode): string | undefined {
  return matcher === undefined && wildcard === undefined && value !== '' ? value : undefined;
}

/** Returns whether a node matches many values that share one bucket. */
function isShared({ matcher, wildcard, shareThreshold }: PolicyNode): boolean {
  return shareThreshold && (matcher !== undefined || wildcard !== undefined);
}

function entryAt(node: PolicyNode, value: string | undefined): NodeEntry {
  const pattern = node.matcher === undefined ? node.value : matcherName(node.matcher);
  return { key: node.key, value, pattern, shared: isShared(node) };
}
