import type { StoreFailurePolicy } from '../limiter/failure-policy.js';
import type { PlanTable } from './plans/plan-table.js';
import type { DomainSettings, UnmatchedMode } from './policy.js';
import type { PhaseSchedule, RuleSpec } from './rule.js';
import type { ValueMatcher } from './values/value-matcher.js';

/*
 * The specification of a policy, as the reader of policy files creates it and as threads and processes exchange it.
 * It is plain data without classes or functions, which structured clone and v8.serialize preserve. TreeBuilder builds
 * the tree for requests from it. Specifications contain key tables, so they must not go anywhere else.
 *
 * Add a new field of the policy file here, or to RuleSpec; the compiler then reports every place that must handle it.
 */

/** The specification of one domain, from all of its files. */
export interface DomainSpec extends DomainHead {
  /** The items of `derive`, in order. */
  readonly steps: readonly StepSpec[];
  /** The rows of `plans`; undefined without it. */
  readonly plans: PlanTable | undefined;
  /** The file itself: a node without a key. */
  readonly root: NodeSpec;
}

/** A domain without its nodes and tables, which may be large. */
export interface DomainHead {
  readonly domain: string;
  /** The policy file, with the name that the user gave; if several are merged, separated by commas. */
  readonly file: string;
  readonly settings: DomainSettings;
}

/** A descriptor and its children. */
export interface NodeSpec {
  readonly fields: NodeFields;
  /** See Match.rules. */
  readonly rules: readonly RuleSpec[];
  /** In file order; no two have the same value, block or pattern. */
  readonly children: readonly NodeSpec[];
}

/** The settings of a descriptor, including those that it inherits. */
export interface NodeFields {
  readonly key: string;
  /** '' matches every value, and a value with `*` is a pattern. With a {@link matcher}, the value is only a name. */
  readonly value: string;
  /** The matcher of the node, instead of a value; the value is then {@link matcherName}. */
  readonly matcher: ValueMatcher | undefined;
  readonly shareThreshold: boolean;
  /** `detailed_metric` and `value_to_metric`; see {@link fixedStatName}. */
  readonly detailedMetric: boolean;
  readonly valueToMetric: boolean;
  /** Phase of the node, of the nearest ancestor that sets one, or of the file. */
  readonly phase: PhaseSchedule;
  /** Failure policy of limit overrides: the policy that all limits of the node share, or else the file's policy. */
  readonly onStoreFailure: StoreFailurePolicy;
  /**
   * `on_unmatched` for descriptors that end here without a rule, or that match no child: of the node or its nearest
   * ancestor.
   */
  readonly onUnmatched: UnmatchedMode;
  /**
   * Whether the limits are items of `rate_limits`, which are identified by names or positions, even a single one.
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
  /** Tenants by the SHA-256 of their API keys, in lower case hexadecimal digits. */
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
 * The exact value that a rule requires of a source, or a path pattern that PathPattern.parse accepts. Undefined: any
 * value.
 */
export type ConditionSpec = string | { readonly pattern: string } | undefined;

/** Returns the entry keys whose values are API keys: the sources of `sha256` tables. */
export function secretSources(
  steps: Iterable<Pick<TableSpec, 'kind' | 'source'> | Pick<RuleStepSpec, 'kind'>>,
): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const step of steps) if (step.kind === 'table') keys.add(step.source);
  return keys;
}

/** A node of a tree, and the number of its parent in file order; -1 for the root. */
export interface Numbered<Node> {
  readonly node: Node;
  readonly parent: number;
}

/** Yields all nodes of a tree in file order, each before its children. */
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
    // The stack returns the last one first.
    for (let i = children.length - 1; i >= 0; i--) open.push({ node: children[i] as Node, parent: number });
  }
}
