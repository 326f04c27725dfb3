import type { StoreFailurePolicy } from '../limiter/failure-policy.js';
import { Level } from './level.js';
import { MatchMemo } from './match-memo.js';
import type { EXCEEDED, MatchWork } from './match-work.js';
import {
  addressPart,
  type BucketName,
  patternPart,
  secretPart,
  sharedMatcherPart,
  textPart,
} from './names/bucket-key.js';
import type { UnmatchedMode } from './policy.js';
import { isCredential, shownValue } from './redact.js';
import type { PhaseSchedule, Rule } from './rule.js';
import type { NodeFields } from './spec.js';
import { canonicalAddress } from './values/cidr.js';
import { matcherLabel, type ValueMatcher } from './values/value-matcher.js';
import { Wildcard } from './values/wildcard.js';

let nextId = 0;

/** Most nodes have none below, and there may be thousands of them. */
const NO_LEVELS = new Map<string, Level<PolicyNode>>();

/** What a node is built from; see {@link PolicyNode}. */
export interface NodeOptions {
  readonly fields: NodeFields;
  readonly parent: PolicyNode | undefined;
  /** See Match.rules. */
  readonly rules: readonly Rule[];
  /** Whether the values that the node takes are secrets. */
  readonly isSecret: boolean;
}

/** One descriptor of the policy file, compiled. The root of a domain is a node without key. */
export class PolicyNode {
  /** What the policy says; what matching reads of it stands in the node itself, too. */
  readonly fields: NodeFields;
  readonly matcher: ValueMatcher | undefined;
  readonly wildcard: Wildcard | undefined;
  readonly parent: PolicyNode | undefined;
  readonly phase: PhaseSchedule;
  readonly onStoreFailure: StoreFailurePolicy;
  readonly onUnmatched: UnmatchedMode;
  /** See Match.rules. Replaced only by {@link CompiledPolicy.setSecretKeys}. */
  rules: readonly Rule[];
  /** Names of the rules in statistics; undefined where values of requests enter them. */
  statNames: readonly string[] | undefined;
  /**
   * Tells the nodes of one process apart; of two in a tree the one that stands later in the file has the greater one.
   */
  readonly id = nextId++;
  /** Which entries of a descriptor that ends here enter the name of its bucket with their values. */
  readonly bucketEntries: readonly number[];
  /** The bucket of every descriptor that ends here, once named; stays undefined where values enter. */
  fixedBucket: BucketName | undefined;
  /** Nodes below, by entry key. Only {@link add} changes it. */
  levels = NO_LEVELS;
  /** One for the whole tree. */
  readonly memo: MatchMemo<PolicyNode | null>;
  /** Part of the bucket key that is the same for every value: all of it unless the value enters itself. */
  private fixedPart = '';
  /** Whether a bucket is of one value only, which then is a part of its name. */
  readonly isValueInBucket: boolean;
  private secret = false;
  /** The entry that this node matches: 0 for the first. The root has none. */
  private readonly depth: number;

  constructor({ fields, parent, rules, isSecret }: NodeOptions) {
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
    this.statNames = fixedStatsOf(rules);
    const takesMany = this.wildcard !== undefined || matcher !== undefined;
    this.isValueInBucket = takesMany ? !shareThreshold : value === '';
    this.depth = parent === undefined ? -1 : parent.depth + 1;
    const above = parent?.bucketEntries ?? [];
    this.bucketEntries = this.isValueInBucket && this.depth >= 0 ? [...above, this.depth] : above;
    this.setSecret(isSecret);
  }

  get key(): string {
    return this.fields.key;
  }

  /** {@link NodeFields.value}. */
  get value(): string {
    return this.fields.value;
  }

  get shareThreshold(): boolean {
    return this.fields.shareThreshold;
  }

  get valueToMetric(): boolean {
    return this.fields.valueToMetric;
  }

  /** Whether the values that this node takes are secrets. */
  get isSecret(): boolean {
    return this.secret;
  }

  /**
   * Says whether the values that this node takes are secrets, which enter names as digests. What was named before is
   * named anew.
   */
  setSecret(secret: boolean): void {
    this.secret = secret;
    this.fixedBucket = undefined;
    this.fixedPart = textPart(this.key) + (this.isValueInBucket ? '' : fixedValuePart(this));
  }

  /** Gives the node the same rules under other names. */
  renameRules(rules: readonly Rule[]): void {
    this.rules = rules;
    this.statNames = fixedStatsOf(rules);
  }

  /** The part of a bucket key for an entry that matched this node. */
  keyPart(value: string): string {
    if (!this.isValueInBucket) return this.fixedPart;
    if (this.matcher?.kind === 'cidr') {
      return this.fixedPart + addressPart(canonicalAddress(value) ?? value, this.secret);
    }
    return this.fixedPart + (this.secret ? secretPart(value) : textPart(value));
  }

  /** The node below that an entry leads to; {@link EXCEEDED} when `work` does not last to find it. */
  find(key: string, value: string, work: MatchWork): PolicyNode | undefined | typeof EXCEEDED {
    return this.levels.get(key)?.find(value, work);
  }

  /** The nodes that lie `depth` below this one, 0 for itself; Infinity: all of them, with itself. */
  *nodesBelow(depth: number): Generator<PolicyNode> {
    if (depth === 0 || depth === Number.POSITIVE_INFINITY) yield this;
    if (depth === 0) return;
    for (const node of this.children()) yield* node.nodesBelow(depth - 1);
  }

  /** Adds a node below, behind those that are there. */
  add(node: PolicyNode): void {
    let level = this.levels.get(node.key);
    if (level === undefined) {
      level = new Level(this.memo);
      if (this.levels === NO_LEVELS) this.levels = new Map();
      this.levels.set(node.key, level);
    }
    level.add(node);
  }

  /** Nodes below, in file order within one key. */
  *children(): Iterable<PolicyNode> {
    for (const level of this.levels.values()) yield* level.nodes;
  }

  /** Nodes below, in file order. */
  inFileOrder(): readonly PolicyNode[] {
    return [...this.children()].sort((one, other) => one.id - other.id);
  }

  /** The nodes from the first below the root to this one. */
  path(): readonly PolicyNode[] {
    const way: PolicyNode[] = [];
    for (let node: PolicyNode = this; node.parent !== undefined; node = node.parent) way.push(node);
    return way.reverse();
  }

  /** How messages name the node; see {@link nodeLabel}. */
  get label(): string {
    return nodeLabel(this.key, this.value, this.matcher, this.secret);
  }
}

/**
 * `resource_group=user-chats`, or the key alone; see {@link matcherLabel}. The literal value of a secret is redacted; a
 * pattern is none.
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

/** The part of a bucket key for the value of a node that has one bucket. */
function fixedValuePart({ value, matcher, wildcard, isSecret }: PolicyNode): string {
  if (matcher !== undefined) return sharedMatcherPart(matcher);
  if (wildcard !== undefined) return patternPart(value);
  return isSecret ? secretPart(value) : textPart(value);
}

function fixedStatsOf(rules: readonly Rule[]): readonly string[] | undefined {
  const names = rules.map(({ statName }) => statName);
  return names.includes('') ? undefined : names;
}
