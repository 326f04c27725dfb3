import { MatchWork } from '../match-work.js';
import { normalisePath } from '../paths/normalise-path.js';
import { PathPattern } from '../paths/path-pattern.js';
import { hasEnds, literalSuffix, matchesFrom, PathCursor, type Segment } from '../paths/path-segments.js';

/** The condition of a rule for one source: an exact value, or a path pattern. Undefined: any value. */
export type DeriveCondition = string | PathPattern | undefined;

/** A rule of a `derive` step. */
export interface DeriveRule {
  /** In the order of the step's sources. */
  readonly conditions: readonly DeriveCondition[];
  /** Value of the derived entry. */
  readonly value: string;
}

/** Units (MatchWork) for each visited node of the conditions. */
const CONDITION_UNITS = 12;

const NO_VALUES: readonly string[] = [];
const NO_WORK = new MatchWork();

/** The conditions for a source, with one node for each combination of exact values of the sources before it. */
class ConditionNode {
  /** The first rule that passes through this node. */
  readonly firstRule: number;
  /** By the exact value of the next source. */
  exact: Map<string, ConditionNode> | undefined;
  /** For rules without an exact value of it. */
  other: ConditionNode | undefined;
  /**
   * After the last source: the first rule without a path pattern, and those with one, by the source of the first
   * pattern.
   */
  rule = NO_RULE;
  tries: (SegmentTrie | undefined)[] | undefined;

  constructor(least: number) {
    this.firstRule = least;
  }
}

/**
 * The rules of a `derive` step, compiled so that their number hardly matters. Exact values are hashed, in the order of
 * the sources, and the path patterns of rules with the same exact values form one trie. Rules are added in file order,
 * each in some microseconds.
 */
export class RuleIndex {
  private readonly rules: DeriveRule[] = [];
  private readonly sources: number;
  private readonly root = new ConditionNode(0);
  private readonly cursors: PathCursor[] = [];
  /** Normalized path of each value that is tested; '' if it is not needed. */
  private readonly paths: string[] = [];
  private values = NO_VALUES;
  private work = NO_WORK;
  /** Whether any rule has more than one path pattern. */
  private hasSeveralPatterns = false;
  private best = NO_RULE;

  constructor(sources: number) {
    this.sources = sources;
    for (let i = 0; i < sources; i++) this.cursors.push(new PathCursor());
  }

  /** Adds the next rule in file order. */
  add(rule: DeriveRule): void {
    const place = this.rules.push(rule) - 1;
    let node = this.root;
    let patterns = 0;
    let first = -1;
    for (let i = 0; i < this.sources; i++) {
      const condition = rule.conditions[i];
      if (condition instanceof PathPattern) {
        patterns++;
        if (first < 0) first = i;
      }
      node = childOf(node, condition, place);
    }
    if (first < 0) {
      node.rule = Math.min(node.rule, place);
      return;
    }
    if (patterns > 1) this.hasSeveralPatterns = true;
    node.tries ??= new Array<SegmentTrie | undefined>(this.sources).fill(undefined);
    const trie = node.tries[first] ?? new SegmentTrie(place);
    node.tries[first] = trie;
    trie.add(rule.conditions[first] as PathPattern, place, this.isLast);
  }

  /**
   * Returns the first rule in file order that matches the values of the sources. The result means nothing if `work` is
   * exceeded.
   */
  find(values: readonly string[], work: MatchWork): DeriveRule | undefined {
    this.values = values;
    this.work = work;
    this.best = NO_RULE;
    this.visit(this.root, 0);
    for (let i = 0; i < this.sources; i++) {
      this.paths[i] = '';
      (this.cursors[i] as PathCursor).close();
    }
    this.values = NO_VALUES;
    this.work = NO_WORK;
    return this.best === NO_RULE ? undefined : this.rules[this.best];
  }

  private visit(node: ConditionNode, source: number): void {
    if (node.firstRule >= this.best || !this.work.charge(CONDITION_UNITS)) return;
    if (source === this.sources) {
      this.visitLast(node);
      return;
    }
    const next = node.exact?.get(this.values[source] as string);
    if (next !== undefined) this.visit(next, source + 1);
    if (node.other !== undefined) this.visit(node.other, source + 1);
  }

  private visitLast({ rule, tries }: ConditionNode): void {
    if (rule < this.best) this.best = rule;
    if (tries === undefined) return;
    for (let i = 0; i < tries.length; i++) {
      const trie = tries[i];
      if (trie === undefined || trie.least >= this.best) continue;
      if (!this.normalisePathOf(i)) return;
      const cursor = this.cursors[i] as PathCursor;
      const accepts = this.hasSeveralPatterns ? this.accepts : undefined;
      this.best = trie.find(cursor, this.best, accepts, this.work);
    }
  }

  /** Normalizes a value, unless it is done; returns false if that exceeds the bound of work. */
  private normalisePathOf(source: number): boolean {
    if (this.paths[source]) return true;
    const value = this.values[source] as string;
    // Reading a path, and its segments, takes as long as trying a pattern on it.
    if (!this.work.chargePattern(value.length)) return false;
    const path = normalisePath(value);
    this.paths[source] = path;
    (this.cursors[source] as PathCursor).open(path);
    return true;
  }

  private readonly isLast = (rule: number): boolean => {
    let patterns = 0;
    for (const condition of (this.rules[rule] as DeriveRule).conditions) {
      if (condition instanceof PathPattern) patterns++;
    }
    return patterns === 1;
  };

  /** Returns whether the path patterns of a rule after its first one match, too. */
  private readonly accepts: Accepts = (rule) => {
    const { conditions } = this.rules[rule] as DeriveRule;
    let isFirst = true;
    for (let i = 0; i < conditions.length; i++) {
      const condition = conditions[i];
      if (!(condition instanceof PathPattern)) continue;
      if (isFirst) {
        isFirst = false;
        continue;
      }
      if (!this.normalisePathOf(i) || !condition.matches(this.paths[i] as string, this.work)) return false;
    }
    return true;
  };
}

function childOf(node: ConditionNode, condition: DeriveCondition, place: number): ConditionNode {
  if (typeof condition !== 'string') {
    node.other ??= new ConditionNode(place);
    return node.other;
  }
  node.exact ??= new Map();
  const known = node.exact.get(condition);
  if (known !== undefined) return known;
  const made = new ConditionNode(place);
  node.exact.set(condition, made);
  return made;
}

/** Greater than every rule. */
const NO_RULE = Number.MAX_SAFE_INTEGER;

/** Units (MatchWork) for each visited node, and for comparing the ends of a text. */
const NODE_UNITS = 20;
const ENDS_UNITS = 8;

/** Returns whether the conditions of a rule besides its path hold; rules of a trie are numbers in file order. */
type Accepts = (rule: number) => boolean;

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
class SegmentTrie {
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
      const next = segmentBelow(node, all[i] as Segment, rule);
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
function segmentBelow(node: SegmentNode, segment: Segment, rule: number): SegmentNode | undefined {
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
