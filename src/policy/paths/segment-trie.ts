import type { MatchWork } from '../match-work.js';
import type { PathPattern } from './path-pattern.js';
import { hasEnds, literalSuffix, matchesFrom, type PathCursor, type Segment } from './path-segments.js';

/** Greater than every rule. */
export const NO_RULE = Number.MAX_SAFE_INTEGER;

/** Units (MatchWork) for each visited node, and for comparing the ends of a text. */
const NODE_UNITS = 20;
const ENDS_UNITS = 8;

/** Returns whether the conditions of a rule besides its path hold; rules of a trie are numbers in file order. */
export type Accepts = (rule: number) => boolean;

/** The rest of a pattern from the first segment that has no edge. */
interface PatternRest {
  readonly rule: number;
  readonly segments: readonly Segment[];
  readonly from: number;
  /** Every path that matches ends with this text. */
  readonly end: string;
}

interface StarEdge {
  readonly prefix: string;
  readonly suffix: string;
  readonly node: SegmentNode;
}

class SegmentNode {
  /** The first rule that passes through this node. */
  readonly firstRule: number;
  literals: Map<string, SegmentNode> | undefined;
  /** Length of the longest literal. */
  longest = 0;
  /** Edge for `*`. */
  any: SegmentNode | undefined;
  /** Edges for other segments with one star, by prefix and suffix. */
  stars: Map<string, StarEdge> | undefined;
  /** Rules whose patterns end here, and those that end here with `**`, ascending. */
  here: number[] | undefined;
  below: number[] | undefined;
  /** Ascending by rule. */
  rests: PatternRest[] | undefined;

  constructor(least: number) {
    this.firstRule = least;
  }
}

/**
 * Path patterns of many rules in one trie of segments: one walk finds the first rule that matches a path. Strings,
 * segments that are `*` and a trailing `**` are edges, so their number does not matter. Other segments with one star
 * are edges that are tried one by one. Other patterns (`?`, sets, several stars in a segment, `**` in the middle) are
 * tested one by one where their edges end, if the path has the required end.
 */
export class SegmentTrie {
  /** The first rule in the trie. */
  readonly least: number;
  private readonly root: SegmentNode;
  /** Alternatives without special characters, as complete paths. */
  private readonly paths = new Map<string, number[]>();
  private longestPath = 0;
  /** The cursor of the current walk. */
  private cursor: PathCursor | undefined;
  private best = NO_RULE;

  constructor(least: number) {
    this.least = least;
    this.root = new SegmentNode(least);
  }

  /**
   * Adds the pattern of a rule that comes after all others. A rule for which `isLast` holds has no other conditions, so
   * later rules with the same path are unreachable.
   */
  add({ alternatives }: PathPattern, rule: number, isLast: (rule: number) => boolean): void {
    for (const alternative of alternatives) this.addAlternative(alternative, rule, isLast);
  }

  private addAlternative(all: readonly Segment[], rule: number, isLast: (rule: number) => boolean): void {
    let count = all.length;
    while (all[count - 1]?.kind === 'any') count--;
    const plain = plainPath(all);
    if (plain !== undefined) {
      this.paths.set(plain, withRule(this.paths.get(plain), rule, isLast));
      this.longestPath = Math.max(this.longestPath, plain.length);
      return;
    }
    let node = this.root;
    for (let i = 0; i < count; i++) {
      const next = childOf(node, all[i] as Segment, rule);
      if (next === undefined) {
        node.rests ??= [];
        node.rests.push({ rule, segments: all, from: i, end: literalSuffix(all) });
        return;
      }
      node = next;
    }
    if (count < all.length) node.below = withRule(node.below, rule, isLast);
    else node.here = withRule(node.here, rule, isLast);
  }

  /**
   * Returns the first rule before `best` that matches the cursor's path and that `accepts` allows, or `best` if no such
   * rule exists. `accepts` is undefined if no rule has other conditions. The result means nothing if `work` is
   * exceeded.
   */
  find(cursor: PathCursor, best: number, accepts: Accepts | undefined, work: MatchWork): number {
    const { path } = cursor;
    this.cursor = cursor;
    this.best = best;
    if (path.length <= this.longestPath) {
      const rules = this.paths.get(path);
      if (rules !== undefined) this.take(rules, accepts);
    }
    this.walk(this.root, 0, accepts, work);
    return this.best;
  }

  private walk(node: SegmentNode, depth: number, accepts: Accepts | undefined, work: MatchWork): void {
    if (node.firstRule >= this.best || !work.charge(NODE_UNITS)) return;
    const cursor = this.cursor as PathCursor;
    if (node.below !== undefined) this.take(node.below, accepts);
    if (node.rests !== undefined) this.tryRests(node.rests, cursor.slash(depth), accepts, work);
    const end = cursor.end(depth);
    if (end < 0) {
      if (node.here !== undefined) this.take(node.here, accepts);
      return;
    }
    const start = cursor.slash(depth) + 1;
    if (node.literals !== undefined && end - start <= node.longest) {
      const next = node.literals.get(cursor.text(depth));
      if (next !== undefined) this.walk(next, depth + 1, accepts, work);
    }
    if (node.any !== undefined) this.walk(node.any, depth + 1, accepts, work);
    if (node.stars === undefined) return;
    for (const { prefix, suffix, node: next } of node.stars.values()) {
      if (!work.charge(ENDS_UNITS)) return;
      if (prefix.length + suffix.length > end - start) continue;
      if (hasEnds(cursor.path, start, end, prefix, suffix)) this.walk(next, depth + 1, accepts, work);
    }
  }

  private take(rules: readonly number[], accepts: Accepts | undefined): void {
    for (let i = 0; i < rules.length; i++) {
      const rule = rules[i] as number;
      if (rule >= this.best) return;
      if (accepts === undefined || accepts(rule)) this.best = rule;
    }
  }

  private tryRests(
    rests: readonly PatternRest[],
    slash: number,
    accepts: Accepts | undefined,
    work: MatchWork,
  ): void {
    const { path } = this.cursor as PathCursor;
    for (let i = 0; i < rests.length; i++) {
      const { rule, segments, from, end } = rests[i] as PatternRest;
      if (rule >= this.best || !work.charge(ENDS_UNITS)) return;
      if (!path.startsWith(end, Math.max(slash, path.length - end.length))) continue;
      if (!matchesFrom(segments, from, path, slash, work)) continue;
      if (accepts === undefined || accepts(rule)) this.best = rule;
    }
  }
}

/** Returns the node of a segment, created if needed; undefined for a segment without an edge. */
function childOf(node: SegmentNode, segment: Segment, rule: number): SegmentNode | undefined {
  const make = (): SegmentNode => new SegmentNode(rule);
  if (segment.kind === 'literal') {
    const { text } = segment;
    node.literals ??= new Map();
    let child = node.literals.get(text);
    if (child === undefined) {
      child = make();
      node.literals.set(text, child);
      node.longest = Math.max(node.longest, text.length);
    }
    return child;
  }
  if (segment.kind !== 'star') return undefined;
  const { prefix, suffix } = segment;
  if (prefix === '' && suffix === '') {
    node.any ??= make();
    return node.any;
  }
  node.stars ??= new Map();
  // A segment contains no slash.
  const ends = `${prefix}/${suffix}`;
  let edge = node.stars.get(ends);
  if (edge === undefined) {
    edge = { prefix, suffix, node: make() };
    node.stars.set(ends, edge);
  }
  return edge.node;
}

/** Rules after one without other conditions are unreachable. */
function withRule(rules: number[] | undefined, rule: number, isLast: (rule: number) => boolean): number[] {
  if (rules === undefined) return [rule];
  const last = rules.at(-1) as number;
  if (last !== rule && !isLast(last)) rules.push(rule);
  return rules;
}

/** Returns the only path that segments without special characters match; undefined for others. */
function plainPath(segments: readonly Segment[]): string | undefined {
  let path = '';
  for (const segment of segments) {
    if (segment.kind !== 'literal') return undefined;
    path += `/${segment.text}`;
  }
  return path === '' ? '/' : path;
}
