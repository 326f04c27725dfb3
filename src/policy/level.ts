import type { MatchMemo } from './match-memo.js';
import { EXCEEDED, type MatchWork } from './match-work.js';
import { PossibleDenial, type PossibleNode } from './possible-denial.js';
import { type CidrIntervals, CidrTable } from './values/cidr-table.js';
import { PatternList } from './values/pattern-list.js';
import { RegexList } from './values/regex-matcher.js';
import type { ValueMatcher } from './values/value-matcher.js';
import type { Wildcard } from './values/wildcard.js';

/** Steps for a lookup of exact values. */
const LOOKUP_STEPS = 4;
/** Maximum length that V8 hashes (String::kMaxHashCalcLength). */
const MAX_HASHED_UNITS = 16_384;

/** Deeper than usual policies; all deeper levels share one result. */
const MAX_DEPTH = 32;
const ANY_DEPTH = Number.POSITIVE_INFINITY;

/** The properties of a node that a level needs. */
export interface LevelNode extends PossibleNode {
  /** '' matches any value, unless there is a matcher. */
  readonly value: string;
  readonly matcher: ValueMatcher | undefined;
  readonly wildcard: Wildcard | undefined;
  /** Yields the nodes at `depth` further entries that a request may reach. */
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
  /** Results of regular expressions, null for no match. */
  private readonly memo: MatchMemo<Node | null>;

  /** By depth, and by -1 - depth for blocked customers. Created when first requested. */
  private readonly denials = new Map<number, PossibleDenial>();

  constructor(memo: MatchMemo<Node | null>) {
    this.memo = memo;
  }

  /**
   * Returns the node that a value matches: first by its exact value, then by the longest block that contains the
   * address, then by patterns and by regular expressions in file order. The node without a value comes last. The choice
   * is final: if the path ends further down, no other node is tried. Returns {@link EXCEEDED} if `work` is exhausted.
   */
  find(value: string, work: MatchWork): Node | undefined | typeof EXCEEDED {
    if (this.exact.size > 0) {
      // Looked up even without remaining steps: it takes no longer than a lookup of 16 KiB, because V8 hashes no
      // more of a string.
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
   * Returns the rules that may deny below the nodes that a value may match, at `depth` further entries. Nodes with an
   * exact value are excluded. `isBlocked` tells whether a row of plans may block the customer.
   */
  denialBelow(depth: number, isBlocked: boolean): PossibleDenial {
    const level = depth > MAX_DEPTH ? ANY_DEPTH : depth;
    const key = isBlocked ? -1 - level : level;
    let denial = this.denials.get(key);
    if (denial === undefined) {
      denial = new PossibleDenial(() => this.nodesBelow(level), isBlocked);
      this.denials.set(key, denial);
    }
    return denial;
  }

  private *nodesBelow(depth: number): Generator<PossibleNode> {
    for (const node of this.nodes) {
      if (this.exact.get(node.value) !== node) yield* node.nodesBelow(depth);
    }
  }

  /** Adds a node after the others. No two nodes have the same value, block or pattern. */
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

  /** Returns the prepared form of all blocks, for {@link setIntervals} of a level with the same nodes. */
  preparedIntervals(): CidrIntervals | undefined {
    return this.blocks?.prepared();
  }

  setIntervals(intervals: CidrIntervals): void {
    this.blocks?.setPrepared(intervals);
  }

  /** Returns the prepared form of the patterns, for {@link setPatterns}. */
  preparedPatterns(): Int32Array | undefined {
    return this.patterns?.prepared();
  }

  setPatterns(words: Int32Array): void {
    this.patterns?.setPrepared(words);
  }

  /** Number of steps to compile the regular expressions; see {@link compile}. */
  get compileSteps(): number {
    return this.regexes?.setCount ?? 0;
  }

  /** Runs one step, from 0, which takes 1 or 2 ms. Missing steps run when a value first needs them. */
  compile(step: number): void {
    this.regexes?.compile(step);
  }
}
