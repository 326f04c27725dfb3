import { EXCEEDED, type MatchWork } from '../match-work.js';
import { normalisePathWithin } from '../paths/normalise-path.js';
import { PathCursor } from '../paths/path-cursor.js';
import { PathPattern } from '../paths/path-pattern.js';
import { type Accepts, NO_RULE, SegmentTrie } from '../paths/segment-trie.js';
import type { DeriveCondition, DeriveRule } from './derive-rule.js';

/** Steps for each visited node of the conditions. */
const CONDITION_STEPS = 10;
/** V8 hashes only the length of longer strings (String::kMaxHashCalcLength). */
const MAX_HASHED_UNITS = 16_384;

const NO_VALUES: readonly string[] = [];

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
  private work: MatchWork | undefined;
  /** Whether any rule has more than one path pattern. */
  private hasSeveralPatterns = false;
  private best = NO_RULE;
  private exceeded = false;

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

  /** Returns the first rule in file order that matches the values of the sources. */
  find(values: readonly string[], work: MatchWork): DeriveRule | undefined | typeof EXCEEDED {
    this.values = values;
    this.work = work;
    this.best = NO_RULE;
    this.exceeded = false;
    this.visit(this.root, 0, work);
    for (let i = 0; i < this.sources; i++) {
      this.paths[i] = '';
      (this.cursors[i] as PathCursor).close();
    }
    this.values = NO_VALUES;
    if (this.exceeded) return EXCEEDED;
    return this.best === NO_RULE ? undefined : this.rules[this.best];
  }

  private visit(node: ConditionNode, source: number, work: MatchWork): void {
    if (node.firstRule >= this.best || this.exceeded) return;
    if (!work.spend(CONDITION_STEPS)) {
      this.exceeded = true;
      return;
    }
    if (source === this.sources) {
      this.visitLast(node, work);
      return;
    }
    if (node.exact !== undefined) {
      const value = this.values[source] as string;
      if (work.spend(Math.min(value.length, MAX_HASHED_UNITS) >> 2)) {
        const next = node.exact.get(value);
        if (next !== undefined) this.visit(next, source + 1, work);
      } else {
        this.exceeded = true;
      }
    }
    if (node.other !== undefined) this.visit(node.other, source + 1, work);
  }

  private visitLast({ rule, tries }: ConditionNode, work: MatchWork): void {
    if (rule < this.best) this.best = rule;
    if (tries === undefined) return;
    for (let i = 0; i < tries.length; i++) {
      const trie = tries[i];
      if (trie === undefined || trie.least >= this.best || this.exceeded) continue;
      if (!this.normalisePathOf(i, work)) return;
      const cursor = this.cursors[i] as PathCursor;
      const found = trie.find(cursor, this.best, this.hasSeveralPatterns ? this.accepts : undefined, work);
      if (found === EXCEEDED) this.exceeded = true;
      else this.best = found;
    }
  }

  /** Normalizes a value, unless it is done; returns false if the work budget is exhausted. */
  private normalisePathOf(source: number, work: MatchWork): boolean {
    if (this.paths[source]) return true;
    const path = normalisePathWithin(this.values[source] as string, work);
    // The walk extracts segments and hashes them, which costs about as much as reading each character.
    if (path === EXCEEDED || !work.spend(16 + (path.length >> 2))) {
      this.exceeded = true;
      return false;
    }
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
    const work = this.work as MatchWork;
    let isFirst = true;
    for (let i = 0; i < conditions.length; i++) {
      const condition = conditions[i];
      if (!(condition instanceof PathPattern)) continue;
      if (isFirst) {
        isFirst = false;
        continue;
      }
      if (!this.normalisePathOf(i, work)) return EXCEEDED;
      const matches = condition.matchesWithin(this.paths[i] as string, work);
      if (matches !== true) return matches;
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
