import type { StoreFailurePolicy } from '../limiter/failure-policy.js';
import { MatchMemo, type MatchWork } from './match-work.js';
import {
  addressPart,
  CLASS_PART,
  patternPart,
  secretPart,
  sharedMatcherPart,
  textPart,
} from './names/bucket-key.js';
import type { PlanTable } from './plans/plan-table.js';
import type { UnmatchedMode } from './policy.js';
import { isCredential, shownValue } from './redact.js';
import type { PhaseSchedule, Rule } from './rule.js';
import type { NodeFields } from './spec.js';
import { canonicalAddress } from './values/cidr.js';
import { CidrTable } from './values/cidr-table.js';
import { RegexList } from './values/regex-list.js';
import { matcherLabel, type ValueMatcher, Wildcard } from './values/value-matcher.js';

let nextId = 0;

/** Shared, because most of thousands of nodes have no children. */
const NO_LEVELS = new Map<string, Level<PolicyNode>>();
const NO_CHILDREN = new Set<PolicyNode>();

/** Options of a {@link PolicyNode}. */
export interface NodeOptions {
  readonly fields: NodeFields;
  readonly parent: PolicyNode | undefined;
  /** See Match.rules. */
  readonly rules: readonly Rule[];
  /** Whether the values that the node matches are secrets. */
  readonly isSecret: boolean;
  /** The rows of `plans`; only needed for the root. */
  readonly plans?: PlanTable | undefined;
}

/** Names of the buckets of a node's rules. */
export interface NamedBucket {
  /** The node with these rules; a copy with the limits of the customer if they come from a plan. */
  readonly node: PolicyNode;
  /** One per rule. */
  readonly keys: readonly string[];
  /** Number of characters for domain and first entry, which all keys share. */
  readonly hashTagLength: number;
  /** See {@link Match.statNames}. */
  readonly statNames: readonly string[];
}

/** A compiled descriptor of the policy file. The root of a domain is a node without a key. */
export class PolicyNode {
  /** The specification of the node; fields that matching needs are copied to the node. */
  readonly fields: NodeFields;
  readonly matcher: ValueMatcher | undefined;
  readonly wildcard: Wildcard | undefined;
  readonly parent: PolicyNode | undefined;
  readonly phase: PhaseSchedule;
  readonly onStoreFailure: StoreFailurePolicy;
  readonly onUnmatched: UnmatchedMode;
  /** See Match.rules. */
  readonly rules: readonly Rule[];
  /** Names of the rules in statistics; undefined if they contain values of requests. */
  readonly statNames: readonly string[] | undefined;
  /** Unique in the process, and increasing in file order within a tree. */
  readonly id = nextId++;
  /** Whether the limits of a customer may come from a plan. */
  readonly usesPlan: boolean;
  /** Whether an entry on the path selects a row of `plans`, which may block the customer. */
  readonly hasCustomer: boolean;
  /** Indexes of the entries whose values are part of the bucket's name. */
  readonly bucketEntries: readonly number[];
  /**
   * Indexes of the entries whose values determine the bucket's name and its rules: {@link bucketEntries}, and the
   * customer if several customers share the bucket and one of them may be blocked.
   */
  readonly bucketAndPlanEntries: readonly number[];
  /**
   * Index of the entry that names the class of the caller (`priorities`), which is not part of the names of such
   * limits; -1 without such limits.
   */
  readonly classEntry: number;
  /** The copies of this node for the classes of callers, see nodeOfClasses. The policy bounds their number. */
  classNodes: Map<string, PolicyNode> | undefined;
  /** Children whose entries name classes of limits at or below them. Only {@link add} changes them. */
  classChildren = NO_CHILDREN;
  /** The bucket of every descriptor that ends here, once it is named; undefined if values are part of the name. */
  fixedBucket: NamedBucket | undefined;
  /** Children, by entry key. Only {@link add} changes them. */
  levels = NO_LEVELS;
  /** Shared by the whole tree. */
  readonly memo: MatchMemo<PolicyNode | null>;
  /** Part of the bucket key that is the same for every value; the complete part unless the value is in it. */
  private readonly fixedPart: string;
  /** Whether each value has its own bucket, so that the value is part of its name. */
  readonly isValueInBucket: boolean;
  /** Whether the values that this node matches are secrets, which enter names as digests. */
  readonly isSecret: boolean;
  /** Index of the entry that this node matches, from 0; -1 for the root. */
  private readonly depth: number;
  private readonly plans: PlanTable | undefined;
  /** Index of the entry of the customer, if several customers share the buckets from there on; else -1. */
  private readonly sharedCustomer: number;

  constructor({ fields, parent, rules, isSecret, plans }: NodeOptions) {
    const { value, matcher, shareThreshold } = fields;
    this.fields = fields;
    this.matcher = matcher;
    this.memo = parent?.memo ?? new MatchMemo();
    this.wildcard = matcher === undefined && value.includes('*') ? new Wildcard(value) : undefined;
    this.parent = parent;
    this.phase = fields.phase;
    this.onStoreFailure = fields.onStoreFailure;
    this.onUnmatched = fields.onUnmatched;
    this.rules = rules;
    this.usesPlan = rules.some(({ plan }) => plan !== undefined);
    const statNames = rules.map(({ statName }) => statName);
    this.statNames = statNames.includes('') ? undefined : statNames;
    const takesMany = this.wildcard !== undefined || matcher !== undefined;
    this.isValueInBucket = takesMany ? !shareThreshold : value === '';
    this.depth = parent === undefined ? -1 : parent.depth + 1;
    const above = parent?.bucketEntries ?? [];
    this.bucketEntries = this.isValueInBucket && this.depth >= 0 ? [...above, this.depth] : above;
    const by = rules.find(({ priorities }) => priorities !== undefined)?.priorities?.by;
    this.classEntry = by === undefined ? -1 : this.path().findLastIndex(({ key }) => key === by);
    this.plans = parent === undefined ? plans : parent.plans;
    // The first entry with the key selects the row.
    const isCustomer = parent?.hasCustomer === false && this.plans?.by === fields.key;
    this.hasCustomer = isCustomer || parent?.hasCustomer === true;
    this.sharedCustomer =
      isCustomer && takesMany && shareThreshold ? this.depth : (parent?.sharedCustomer ?? -1);
    const isNamed = this.sharedCustomer < 0 || this.plans?.hasBlocked !== true;
    this.bucketAndPlanEntries = isNamed ? this.bucketEntries : [...this.bucketEntries, this.sharedCustomer];
    this.isSecret = isSecret;
    this.fixedPart = textPart(fields.key) + (this.isValueInBucket ? '' : fixedValuePart(this));
  }

  get key(): string {
    return this.fields.key;
  }

  /** {@link NodeFields.value}. */
  get value(): string {
    return this.fields.value;
  }

  /** How the node matches values; `any` without a value. */
  get kind(): 'exact' | 'cidr' | 'pattern' | 'regex' | 'any' {
    if (this.matcher !== undefined) return this.matcher.kind;
    if (this.value === '') return 'any';
    return this.wildcard === undefined ? 'exact' : 'pattern';
  }

  get shareThreshold(): boolean {
    return this.fields.shareThreshold;
  }

  get valueToMetric(): boolean {
    return this.fields.valueToMetric;
  }

  /** Returns the part of a bucket key for an entry that matched this node; without a value, for all classes. */
  keyPart(value: string | undefined): string {
    if (!this.isValueInBucket) return this.fixedPart;
    if (value === undefined) return this.fixedPart + CLASS_PART;
    if (this.matcher?.kind === 'cidr') {
      return this.fixedPart + addressPart(canonicalAddress(value) ?? value, this.isSecret);
    }
    return this.fixedPart + (this.isSecret ? secretPart(value) : textPart(value));
  }

  /** Returns the child that an entry matches. The result means nothing if `work` is exceeded. */
  find(key: string, value: string, work: MatchWork): PolicyNode | undefined {
    return this.levels.get(key)?.find(value, work);
  }

  /** Yields this node and all nodes below it. */
  *withDescendants(): Generator<PolicyNode> {
    yield this;
    for (const node of this.children()) yield* node.withDescendants();
  }

  /** Adds a child after the others. */
  add(node: PolicyNode): void {
    let level = this.levels.get(node.key);
    if (level === undefined) {
      level = new Level(this.memo);
      if (this.levels === NO_LEVELS) this.levels = new Map();
      this.levels.set(node.key, level);
    }
    level.add(node);
    if (node.classEntry >= 0) addClassChild(node.path()[node.classEntry] as PolicyNode);
  }

  /** Children, in file order within one key. */
  *children(): Iterable<PolicyNode> {
    for (const level of this.levels.values()) yield* level.nodes;
  }

  inFileOrder(): readonly PolicyNode[] {
    return [...this.children()].sort((one, other) => one.id - other.id);
  }

  /** From the first level to this node. */
  path(): readonly PolicyNode[] {
    const path: PolicyNode[] = [];
    for (let node: PolicyNode = this; node.parent !== undefined; node = node.parent) path.push(node);
    return path.reverse();
  }

  /** Name of the node in messages; see {@link nodeLabel}. */
  get label(): string {
    return nodeLabel(this.key, this.value, this.matcher, this.isSecret);
  }
}

function addClassChild(child: PolicyNode): void {
  const parent = child.parent as PolicyNode;
  if (parent.classChildren === NO_CHILDREN) parent.classChildren = new Set();
  parent.classChildren.add(child);
}

/**
 * Returns `resource_group=user-chats`, or only the key; see {@link matcherLabel}. The literal value of a secret is
 * redacted; a pattern is not.
 */
export function nodeLabel(
  key: string,
  value: string,
  matcher?: ValueMatcher,
  isSecret = isCredential(key),
): string {
  if (matcher !== undefined) return matcherLabel(key, matcher);
  if (value === '') return key;
  return `${key}=${shownValue(value, isSecret)}`;
}

/** Returns the part of a bucket key for the value of a node with a single bucket. */
function fixedValuePart({ value, matcher, wildcard, isSecret }: PolicyNode): string {
  if (matcher !== undefined) return sharedMatcherPart(matcher);
  if (wildcard !== undefined) return patternPart(value);
  return isSecret ? secretPart(value) : textPart(value);
}

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
