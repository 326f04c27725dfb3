import type { PhaseSchedule, Rule, StoreFailurePolicy } from '../limiter/rule.js';
import { type BucketName, patternPart, secretPart, textPart, valuePart } from './bucket-key.js';
import { isCredential, redacted } from './redact.js';
import { Wildcard } from './wildcard.js';

let nextId = 0;

/** What a node is built from; see {@link PolicyNode}. */
export interface NodeOptions {
  readonly key: string;
  readonly value: string;
  readonly shareThreshold: boolean;
  /** `detailed_metric` and `value_to_metric`; see {@link fixedStatName}. */
  readonly detailedMetric: boolean;
  readonly valueToMetric: boolean;
  readonly parent: PolicyNode | undefined;
  readonly phase: PhaseSchedule;
  readonly onStoreFailure: StoreFailurePolicy;
  /** See Match.rules. */
  readonly rules: readonly Rule[];
}

/** One descriptor of the policy file, compiled. The root of a domain is a node without key. */
export class PolicyNode {
  readonly key: string;
  /** '' matches every value; with a `*` a pattern. */
  readonly value: string;
  readonly shareThreshold: boolean;
  readonly detailedMetric: boolean;
  readonly valueToMetric: boolean;
  readonly wildcard: Wildcard | undefined;
  readonly parent: PolicyNode | undefined;
  /** In force here: the node's own, else the nearest above. */
  readonly phase: PhaseSchedule;
  readonly onStoreFailure: StoreFailurePolicy;
  /** See Match.rules. */
  readonly rules: readonly Rule[];
  /** Names of the rules in statistics; undefined where values of requests enter them. */
  readonly statNames: readonly string[] | undefined;
  /** Tells the nodes of one process apart. */
  readonly id = nextId++;
  /** Which entries of a descriptor that ends here enter the name of its bucket with their values. */
  readonly entering: readonly number[];
  /** The bucket of every descriptor that ends here, once named; stays undefined where values enter. */
  onlyBucket: BucketName | undefined;
  /** Nodes below, by entry key. */
  readonly levels = new Map<string, Level>();
  /** Part of the bucket key that is the same for every value: all of it unless the value enters itself. */
  private readonly fixedPart: string;
  private readonly valueEnters: boolean;
  private readonly secret: boolean;
  /** The entry that this node matches: 0 for the first. The root has none. */
  private readonly depth: number;

  constructor(options: NodeOptions) {
    const { key, value, shareThreshold } = options;
    this.key = key;
    this.value = value;
    this.shareThreshold = shareThreshold;
    this.detailedMetric = options.detailedMetric;
    this.valueToMetric = options.valueToMetric;
    this.wildcard = value.includes('*') ? new Wildcard(value) : undefined;
    this.parent = options.parent;
    this.phase = options.phase;
    this.onStoreFailure = options.onStoreFailure;
    this.rules = options.rules;
    const names = options.rules.map(({ statName }) => statName);
    this.statNames = names.includes('') ? undefined : names;
    this.secret = isCredential(key);
    this.valueEnters = value === '' || (this.wildcard !== undefined && !shareThreshold);
    this.depth = options.parent === undefined ? -1 : options.parent.depth + 1;
    const above = options.parent?.entering ?? [];
    this.entering = this.valueEnters && this.depth >= 0 ? [...above, this.depth] : above;
    if (this.valueEnters) this.fixedPart = textPart(key);
    else
      this.fixedPart =
        textPart(key) + (this.wildcard === undefined ? valuePart(key, value) : patternPart(value));
  }

  /** The part of a bucket key for an entry that matched this node. */
  keyPart(value: string): string {
    if (!this.valueEnters) return this.fixedPart;
    return this.fixedPart + (this.secret ? secretPart(value) : textPart(value));
  }

  /** The node below that an entry leads to. */
  find(key: string, value: string): PolicyNode | undefined {
    return this.levels.get(key)?.find(value);
  }

  /** Adds a node below; returns false, and adds nothing, if there is one with this key and value already. */
  add(node: PolicyNode): boolean {
    let level = this.levels.get(node.key);
    if (level === undefined) {
      level = new Level();
      this.levels.set(node.key, level);
    }
    return level.add(node);
  }

  /** Nodes below, in file order within one key. */
  *children(): Iterable<PolicyNode> {
    for (const level of this.levels.values()) yield* level.nodes;
  }

  /** The nodes from the first below the root to this one. */
  way(): readonly PolicyNode[] {
    const way: PolicyNode[] = [];
    for (let node: PolicyNode = this; node.parent !== undefined; node = node.parent) way.push(node);
    return way.reverse();
  }

  /** How messages name the node; see {@link nodeLabel}. */
  get label(): string {
    return nodeLabel(this.key, this.value);
  }
}

/** `resource_group=user-chats`, or the key alone. The literal value of a credential is redacted; a pattern is none. */
export function nodeLabel(key: string, value: string): string {
  if (value === '') return key;
  return `${key}=${isCredential(key) && !value.includes('*') ? redacted(value) : value}`;
}

/** All nodes with one key below one node. */
export class Level {
  readonly nodes: PolicyNode[] = [];
  private readonly exact = new Map<string, PolicyNode>();
  private readonly patterns: PolicyNode[] = [];
  private anyValue: PolicyNode | undefined;
  /** By value, patterns and '' included. */
  private readonly byValue = new Map<string, PolicyNode>();

  /**
   * Exact value first, then patterns in file order, then the node without a value. Decided here and now: a path that ends
   * further down is not tried again with another node.
   */
  find(value: string): PolicyNode | undefined {
    const exact = this.exact.get(value);
    if (exact !== undefined) return exact;
    for (let i = 0; i < this.patterns.length; i++) {
      const node = this.patterns[i] as PolicyNode;
      if ((node.wildcard as Wildcard).matches(value)) return node;
    }
    return this.anyValue;
  }

  /** The node that is written with this value. */
  withValue(value: string): PolicyNode | undefined {
    return this.byValue.get(value);
  }

  add(node: PolicyNode): boolean {
    if (this.byValue.has(node.value)) return false;
    this.byValue.set(node.value, node);
    this.nodes.push(node);
    if (node.wildcard !== undefined) this.patterns.push(node);
    else if (node.value === '') this.anyValue = node;
    else this.exact.set(node.value, node);
    return true;
  }
}
