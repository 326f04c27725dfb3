import type { MatchMemo, MatchWork } from './match-work.js';
import { CidrTable } from './values/cidr-table.js';
import { RegexList } from './values/regex-list.js';
import type { ValueMatcher } from './values/value-matcher.js';
import type { Wildcard } from './values/wildcard.js';

/** Maximum number of wildcard patterns whose results are not cached: they take less time than the cache. */
const MAX_UNCACHED_PATTERNS = 8;

/** The properties of a node that a level needs. */
export interface LevelNode {
  /** '' matches any value, unless there is a matcher. */
  readonly value: string;
  readonly matcher: ValueMatcher | undefined;
  readonly wildcard: Wildcard | undefined;
}

/** All nodes with one key below one node. */
export class Level<Node extends LevelNode> {
  readonly nodes: Node[] = [];
  private readonly exact = new Map<string, Node>();
  private blocks: CidrTable<Node> | undefined;
  /** Nodes with wildcard patterns, in file order, and their patterns. */
  private readonly wildcardNodes: Node[] = [];
  private readonly wildcards: Wildcard[] = [];
  private regexes: RegexList<Node> | undefined;
  private anyValue: Node | undefined;
  /** Results of patterns and regular expressions, null for no match. */
  private readonly memo: MatchMemo<Node | null>;

  constructor(memo: MatchMemo<Node | null>) {
    this.memo = memo;
  }

  /**
   * Returns the node that a value matches: first by its exact value, then by the longest block that contains the
   * address, then by patterns and by regular expressions in file order. The node without a value comes last. The choice
   * is final: if the path ends further down, no other node is tried. The result means nothing if `work` is exceeded.
   */
  find(value: string, work: MatchWork): Node | undefined {
    if (this.exact.size > 0) {
      const exact = this.exact.get(value);
      if (exact !== undefined) return exact;
    }
    if (this.blocks !== undefined) {
      const held = this.blocks.find(value, work);
      if (held !== undefined) return held;
    }
    const matched =
      this.regexes === undefined && this.wildcards.length <= MAX_UNCACHED_PATTERNS
        ? this.firstMatch(value, work)
        : this.cachedMatch(value, work);
    return matched ?? this.anyValue;
  }

  private cachedMatch(value: string, work: MatchWork): Node | undefined {
    const known = this.memo.get(this, value);
    if (known !== undefined) return known ?? undefined;
    const found = this.firstMatch(value, work);
    if (work.exceeded === undefined) this.memo.set(this, value, found ?? null);
    return found;
  }

  /** Tries the patterns, then the regular expressions. */
  private firstMatch(value: string, work: MatchWork): Node | undefined {
    const { wildcards, regexes } = this;
    const count = wildcards.length;
    if (count === 0 && regexes === undefined) return undefined;
    const bytes = Buffer.byteLength(value);
    for (let i = 0; i < count; i++) {
      const wildcard = wildcards[i] as Wildcard;
      if (!work.chargePattern(bytes * wildcard.unitsPerByte)) return undefined;
      if (wildcard.matches(value)) return this.wildcardNodes[i];
    }
    return regexes?.find(value, bytes, work);
  }

  /** Adds a node after the others. No two nodes have the same value, block or pattern. */
  add(node: Node): void {
    this.nodes.push(node);
    if (node.matcher !== undefined) {
      this.addMatcher(node, node.matcher);
    } else if (node.wildcard !== undefined) {
      this.wildcardNodes.push(node);
      this.wildcards.push(node.wildcard);
    } else if (node.value === '') this.anyValue = node;
    else this.exact.set(node.value, node);
  }

  private addMatcher(node: Node, { kind, items, costs }: ValueMatcher): void {
    if (kind === 'cidr') {
      this.blocks ??= new CidrTable();
      this.blocks.add(items, node);
    } else {
      kind satisfies 'regex';
      this.regexes ??= new RegexList();
      this.regexes.add(items, costs, node);
    }
  }

  /**
   * Compiles the blocks and regular expressions, which the first value that needs them would do otherwise. Yields after
   * each part, which may take some milliseconds.
   */
  *compile(): Generator<void, void> {
    if (this.blocks !== undefined) {
      yield* this.blocks.compile();
      yield;
    }
    if (this.regexes !== undefined) yield* this.regexes.compile();
  }
}
