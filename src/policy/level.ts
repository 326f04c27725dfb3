import type { MatchMemo } from './match-memo.js';
import { EXCEEDED, type MatchWork } from './match-work.js';
import { PossibleDenial, type PossibleNode } from './possible-denial.js';
import { type CidrIntervals, CidrTable } from './values/cidr-table.js';
import { PatternList } from './values/pattern-list.js';
import { RegexList } from './values/regex-matcher.js';
import type { ValueMatcher } from './values/value-matcher.js';
import type { Wildcard } from './values/wildcard.js';

/** Steps for a look at the exact values. */
const LOOKUP_STEPS = 4;
/** What V8 hashes of a text (String::kMaxHashCalcLength). */
const MAX_HASHED_UNITS = 16_384;

/** Deeper than policies are; all that lies deeper is answered for together. */
const MAX_DEPTH = 32;
const ANY_DEPTH = Number.POSITIVE_INFINITY;

/** What a level asks of its nodes. */
export interface LevelNode extends PossibleNode {
  /** '' takes any value, unless there is a matcher. */
  readonly value: string;
  readonly matcher: ValueMatcher | undefined;
  readonly wildcard: Wildcard | undefined;
  /** The nodes so many entries further down that a request may lead to. */
  nodesBelow(depth: number): Generator<PossibleNode>;
}

/** All nodes with one key below one node. */
export class Level<Node extends LevelNode> {
  readonly nodes: Node[] = [];
  private readonly exact = new Map<string, Node>();
  private blocks: CidrTable<Node> | undefined;
  private patterns: PatternList<Node> | undefined;
  private regexes: RegexList<Node> | undefined;
  private anyValue: Node | undefined;
  /** What the regular expressions gave, null for nothing. */
  private readonly memo: MatchMemo<Node | null>;

  /** By depth, each made when it is first asked for. */
  private readonly denials = new Map<number, PossibleDenial>();

  constructor(memo: MatchMemo<Node | null>) {
    this.memo = memo;
  }

  /**
   * Exact value first, then the longest block that holds the value as an address, then patterns in file order, then
   * regular expressions in file order, then the node without a value. Decided here and now: a path that ends further
   * down is not tried again with another node. {@link EXCEEDED} when `work` does not last.
   */
  find(value: string, work: MatchWork): Node | undefined | typeof EXCEEDED {
    if (this.exact.size > 0) {
      // Looked for whatever is left: it takes no longer than a look at 16 KiB, as V8 hashes no more of a text.
      work.spend(LOOKUP_STEPS + (Math.min(value.length, MAX_HASHED_UNITS) >> 2));
      const exact = this.exact.get(value);
      if (exact !== undefined) return exact;
    }
    if (this.blocks !== undefined) {
      const held = this.blocks.find(value, work);
      if (held !== undefined) return held;
    }
    if (this.patterns !== undefined) {
      const matched = this.patterns.find(value, work);
      if (matched !== undefined) return matched;
    }
    if (this.regexes !== undefined) {
      const matched = this.findByRegex(this.regexes, value, work);
      if (matched !== null) return matched;
    }
    return this.anyValue;
  }

  private findByRegex(
    regexes: RegexList<Node>,
    value: string,
    work: MatchWork,
  ): Node | null | typeof EXCEEDED {
    const known = this.memo.get(this, value);
    if (known !== undefined) return known;
    const found = regexes.find(value, work) ?? null;
    if (found !== EXCEEDED) this.memo.set(this, value, found);
    return found;
  }

  /**
   * What the rules may deny below the nodes that a value may lead to, `depth` entries further down; nodes of an exact
   * value are not meant.
   */
  denialBelow(depth: number): PossibleDenial {
    const level = depth > MAX_DEPTH ? ANY_DEPTH : depth;
    let denial = this.denials.get(level);
    if (denial === undefined) {
      denial = new PossibleDenial(() => this.nodesBelow(level));
      this.denials.set(level, denial);
    }
    return denial;
  }

  private *nodesBelow(depth: number): Generator<PossibleNode> {
    for (const node of this.nodes) {
      if (this.exact.get(node.value) !== node) yield* node.nodesBelow(depth);
    }
  }

  /** Adds a node behind the others. None of them matches by the very same value, block or pattern. */
  add(node: Node): void {
    this.nodes.push(node);
    if (node.matcher !== undefined) {
      this.addMatcher(node, node.matcher);
    } else if (node.wildcard !== undefined) {
      this.patterns ??= new PatternList();
      this.patterns.add(node.wildcard, node);
    } else if (node.value === '') this.anyValue = node;
    else this.exact.set(node.value, node);
  }

  private addMatcher(node: Node, { kind, items, sizes }: ValueMatcher): void {
    if (kind === 'cidr') {
      this.blocks ??= new CidrTable();
      this.blocks.add(items, node);
    } else {
      kind satisfies 'regex';
      this.regexes ??= new RegexList();
      this.regexes.add(items, sizes, node);
    }
  }

  /** What takes long to be made of blocks, made; for {@link setIntervals} of a level with the same nodes. */
  preparedIntervals(): CidrIntervals | undefined {
    return this.blocks?.prepared();
  }

  setIntervals(intervals: CidrIntervals): void {
    this.blocks?.setPrepared(intervals);
  }

  /** As {@link preparedIntervals}, of the patterns. */
  preparedPatterns(): Int32Array | undefined {
    return this.patterns?.prepared();
  }

  setPatterns(words: Int32Array): void {
    this.patterns?.setPrepared(words);
  }

  /** How many steps it takes to compile the regular expressions; see {@link compile}. */
  get compileSteps(): number {
    return this.regexes?.setCount ?? 0;
  }

  /**
   * Does one step, from 0, which takes a millisecond or two. What is not done is done for the first value that needs
   * it.
   */
  compile(step: number): void {
    this.regexes?.compile(step);
  }
}
