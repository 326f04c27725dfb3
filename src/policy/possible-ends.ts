import type { Entry } from '../limiter/entry.js';
import type { CompiledPolicy } from './compiled-policy.js';
import { DEFAULT_MAX_MATCH_WORK, DEFAULT_MAX_REGEX_VALUE_BYTES, MatchWork } from './match-work.js';
import type { Level, PolicyNode } from './policy-node.js';
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
/**
 * Maximum number of visited nodes, which takes a few milliseconds. A node that could match several pairs counts several
 * times.
 */
export const MAX_VISITED_NODES = 50_000;
/** Matching work of a search: that of eight requests. */
const MAX_SEARCH_WORK = 8 * DEFAULT_MAX_MATCH_WORK;

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
 * Passes the nodes with rules to `take`, in tree order, at which descriptors with all of `pairs` (at most
 * {@link MAX_PAIRS}) may end, whatever their other entries and order. Values match as in requests. Returns whether the
 * search is complete: a large policy, or one that repeats keys on many levels, may have too many nodes.
 */
export function possibleEnds(
  { root }: Pick<CompiledPolicy, 'root'>,
  pairs: readonly Entry[],
  take: (end: PossibleEnd) => void,
): boolean {
  const all = 2 ** pairs.length - 1;
  const work = new MatchWork(MAX_SEARCH_WORK, DEFAULT_MAX_REGEX_VALUE_BYTES);
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
      const node = at.node.find(pair.key, pair.value, work);
      if (work.exceeded === 'match_work') return false;
      if (work.exceeded === 'regex_value') {
        // No request with this value is decided.
        work.reset();
        continue;
      }
      if (node !== undefined) end = new PossibleEnd(node, has | bit, at.above, pair.value);
    } else if (at.visitedNodes < at.nodes.length) {
      const node = at.nodes[at.visitedNodes++] as PolicyNode;
      if (++visited > MAX_VISITED_NODES) return false;
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
    if (isEnd(end.node, end.pairBits, all)) take(end);
  }
  return true;
}

function cursorAt(node: PolicyNode, above: PossibleEnd | undefined, pairs: number): TreeCursor {
  const levels = node.levels.entries();
  return { node, above, levels, key: '', nodes: [], values: new Set(), visitedPairs: pairs, visitedNodes: 0 };
}

function isEnd({ rules }: PolicyNode, has: number, all: number): boolean {
  return has === all && rules.length > 0;
}

/**
 * Returns the {@link PossibleEnd.entries} of the path that the entries of a descriptor match, as far as it goes. The
 * entries must be within the bounds of a request.
 */
export function matchedEntries(
  { root }: Pick<CompiledPolicy, 'root'>,
  entries: readonly Entry[],
): readonly NodeEntry[] {
  const matched: NodeEntry[] = [];
  const work = new MatchWork();
  let node = root;
  for (const entry of entries) {
    const next = node.find(entry.key, entry.value, work);
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
