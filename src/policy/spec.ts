import type { StoreFailurePolicy } from '../limiter/failure-policy.js';
import type { DomainSettings, UnmatchedMode } from './policy.js';
import type { PhaseSchedule, RuleSpec } from './rule.js';
import type { ValueMatcher } from './values/value-matcher.js';

/*
 * What reading a policy gives, and what one thread or process hands to another: plain data, without classes or
 * functions, that structured clone and v8.serialize keep as it is. TreeBuilder makes of it what requests meet. Specs
 * hold key tables, so they go nowhere else.
 *
 * A field of the policy file is added here, or in RuleSpec; the compiler then names every place that must treat it.
 */

/** All that the files of one domain say. */
export interface DomainSpec extends DomainHead {
  /** The items of `derive`, in order. */
  readonly steps: readonly StepSpec[];
  /** The file itself: a node without key. */
  readonly root: NodeSpec;
}

/** A domain without what there may be thousands of. */
export interface DomainHead {
  readonly domain: string;
  /** The file that holds it, as the user named it; several, separated by commas, when they are merged. */
  readonly file: string;
  readonly settings: DomainSettings;
}

/** A descriptor, with what stands below it. */
export interface NodeSpec {
  readonly fields: NodeFields;
  /** See Match.rules. */
  readonly rules: readonly RuleSpec[];
  /** In file order; no two match by the very same value, block or pattern. */
  readonly children: readonly NodeSpec[];
}

/** What a descriptor says for itself, and what holds there because it does not say. */
export interface NodeFields {
  readonly key: string;
  /** '' matches every value; with a `*` a pattern; only a name where there is a {@link matcher}. */
  readonly value: string;
  /** What the node matches in place of a value, which is then {@link matcherName}. */
  readonly matcher: ValueMatcher | undefined;
  readonly shareThreshold: boolean;
  /** `detailed_metric` and `value_to_metric`; see {@link fixedStatName}. */
  readonly detailedMetric: boolean;
  readonly valueToMetric: boolean;
  /** In force here: the node's own, else that of the closest node above that says one, else the file's. */
  readonly phase: PhaseSchedule;
  /** What limit overrides get: what the node's limits agree on, else the file's. */
  readonly onStoreFailure: StoreFailurePolicy;
  /**
   * Of descriptors that end here without a rule, or that no node below takes: the node's own, else the nearest above.
   */
  readonly onUnmatched: UnmatchedMode;
  /**
   * Whether the limits, but for a candidate, are items of `rate_limits`, which go by their names or places, however few
   * they are.
   */
  readonly isList: boolean;
}

/** An item of `derive`. */
export type StepSpec = TableSpec | RuleStepSpec;

/** See {@link TableStep}. */
export interface TableSpec {
  readonly kind: 'table';
  readonly entry: string;
  readonly source: string;
  /** SHA-256 of an API key, lower case hex, to its tenant. */
  readonly table: ReadonlyMap<string, string>;
}

/** See {@link RuleStep}. */
export interface RuleStepSpec {
  readonly kind: 'rules';
  readonly entry: string;
  readonly sources: readonly string[];
  /** In file order. */
  readonly rules: readonly DeriveRuleSpec[];
}

/** See {@link DeriveRule}. */
export interface DeriveRuleSpec {
  /** In the order of the step's sources. */
  readonly conditions: readonly ConditionSpec[];
  readonly value: string;
}

/**
 * The exact value that a rule asks of a source, or a path pattern, which is one that PathPattern.parse takes.
 * Undefined: anything.
 */
export type ConditionSpec = string | { readonly pattern: string } | undefined;

/** Entry keys whose values are API keys: the sources of `sha256` tables. */
export function secretSources(
  steps: Iterable<Pick<TableSpec, 'kind' | 'source'> | Pick<RuleStepSpec, 'kind'>>,
): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const step of steps) if (step.kind === 'table') keys.add(step.source);
  return keys;
}

/** The entry keys that the tree of `root` matches. */
export function keysBelow(root: NodeSpec): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const { node } of inFileOrder(root, ({ children }) => children)) {
    for (const { fields } of node.children) keys.add(fields.key);
  }
  return keys;
}

/** A node of a tree, and the number of its parent: how many nodes came before that one. -1 for the root. */
export interface Numbered<Node> {
  readonly node: Node;
  readonly parent: number;
}

/** All nodes of a tree in file order, each before those below it. */
export function* inFileOrder<Node>(
  root: Node,
  childrenOf: (node: Node) => readonly Node[],
): Generator<Numbered<Node>> {
  const open: Numbered<Node>[] = [{ node: root, parent: -1 }];
  let number = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop(), number++) {
    const { node } = next;
    yield next;
    const children = childrenOf(node);
    // The last one is taken first.
    for (let i = children.length - 1; i >= 0; i--) open.push({ node: children[i] as Node, parent: number });
  }
}
