import { MatchWork } from '../match-work.js';
import { normalisePath } from '../paths/normalise-path.js';
import { PathPattern } from '../paths/path-pattern.js';
import { PathCursor } from '../paths/path-segments.js';
import { type Accepts, NO_RULE, SegmentTrie } from '../paths/segment-trie.js';

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
