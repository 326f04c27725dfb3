import { EXCEEDED, type MatchWork } from '../match-work.js';
import { AffixTrie } from '../values/affix-trie.js';
import type { PathCursor } from './path-cursor.js';
import type { PathPattern } from './path-pattern.js';
import { literalSuffix, matchesFrom, type Segment } from './path-segments.js';

/** Greater than every rule. */
export const NO_RULE = Number.MAX_SAFE_INTEGER;

/** Steps for each visited node, and for each pattern that is tested by itself. */
const NODE_STEPS = 16;
const REST_STEPS = 6;

/** Returns whether the conditions of a rule besides its path hold; rules of a trie are numbers in file order. */
export type Accepts = (rule: number) => boolean | typeof EXCEEDED;

/** The rest of a pattern from the first segment that has no edge. */
interface PatternRest {
  readonly rule: number;
  readonly segments: readonly Segment[];
  readonly from: number;
}

class SegmentNode {
  /** The first rule that passes through this node. */
  readonly firstRule: number;
  literals: Map<string, SegmentNode> | undefined;
  /** Length of the longest literal. */
  longest = 0;
  /** Edge for `*`. */
  any: SegmentNode | undefined;
  /** Edges for other segments with one star. */
  stars: AffixTrie<SegmentNode> | undefined;
  /** Rules whose patterns end here, and those that end here with `**`, ascending. */
  here: number[] | undefined;
  below: number[] | undefined;
  /** By the text with which the path ends; ascending by rule. */
  rests: AffixTrie<PatternRest[]> | undefined;

  constructor(least: number) {
    this.firstRule = least;
  }
}

/**
 * Path patterns of many rules in one trie of segments: one walk finds the first rule that matches a path. Strings,
 * segments with one `*` and a trailing `**` are edges, so their number does not matter. Other patterns (`?`, sets,
 * several stars in a segment, `**` in the middle) are tested one by one where their edges end, if the path has the
 * required end.
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
  private exceeded = false;
  private readonly found: SegmentNode[] = [];
  private readonly rests: PatternRest[][] = [];

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
        node.rests ??= new AffixTrie();
        node.rests.put('', literalSuffix(all), () => []).push({ rule, segments: all, from: i });
        return;
      }
      node = next;
    }
    if (count < all.length) node.below = withRule(node.below, rule, isLast);
    else node.here = withRule(node.here, rule, isLast);
  }

  /**
   * Returns the first rule before `best` that matches the cursor's path and that `accepts` allows, or `best` if no such
   * rule exists. `accepts` is undefined if no rule has other conditions.
   */
  find(
    cursor: PathCursor,
    best: number,
    accepts: Accepts | undefined,
    work: MatchWork,
  ): number | typeof EXCEEDED {
    const { path } = cursor;
    this.cursor = cursor;
    this.best = best;
    this.exceeded = false;
    if (path.length <= this.longestPath) {
      const rules = this.paths.get(path);
      if (rules !== undefined) this.take(rules, accepts);
    }
    this.walk(this.root, 0, accepts, work);
    this.found.length = 0;
    return this.exceeded ? EXCEEDED : this.best;
  }

  private walk(node: SegmentNode, depth: number, accepts: Accepts | undefined, work: MatchWork): void {
    if (node.firstRule >= this.best || this.exceeded) return;
    if (!work.spend(NODE_STEPS)) {
      this.exceeded = true;
      return;
    }
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
    if (node.stars !== undefined) {
      const { found } = this;
      const first = found.length;
      const steps = node.stars.collect(cursor.path, start, end, found);
      if (!work.spend(steps)) this.exceeded = true;
      for (let i = first; i < found.length; i++) {
        this.walk(found[i] as SegmentNode, depth + 1, accepts, work);
      }
      found.length = first;
    }
  }

  private take(rules: readonly number[], accepts: Accepts | undefined): void {
    for (let i = 0; i < rules.length; i++) {
      const rule = rules[i] as number;
      if (rule >= this.best || this.exceeded) return;
      this.try(rule, accepts);
    }
  }

  private tryRests(
    trie: AffixTrie<PatternRest[]>,
    slash: number,
    accepts: Accepts | undefined,
    work: MatchWork,
  ): void {
    const { path } = this.cursor as PathCursor;
    const { rests } = this;
    rests.length = 0;
    if (!work.spend(trie.collect(path, slash, path.length, rests))) this.exceeded = true;
    for (let i = 0; i < rests.length && !this.exceeded; i++)
      this.tryAll(rests[i] as PatternRest[], slash, accepts, work);
  }

  private tryAll(
    rests: readonly PatternRest[],
    slash: number,
    accepts: Accepts | undefined,
    work: MatchWork,
  ): void {
    const { path } = this.cursor as PathCursor;
    for (let i = 0; i < rests.length; i++) {
      const { rule, segments, from } = rests[i] as PatternRest;
      if (rule >= this.best || this.exceeded) return;
      const matches = work.spend(REST_STEPS) ? matchesFrom(segments, from, path, slash, work) : EXCEEDED;
      if (matches === EXCEEDED) this.exceeded = true;
      else if (matches) this.try(rule, accepts);
    }
  }

  private try(rule: number, accepts: Accepts | undefined): void {
    const accepted = accepts === undefined || accepts(rule);
    if (accepted === EXCEEDED) this.exceeded = true;
    else if (accepted) this.best = rule;
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
  node.stars ??= new AffixTrie();
  return node.stars.put(prefix, suffix, make);
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
