import { levelsToPrepare, TreeBuilder } from '../../policy/build-policy.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import type { DeriveStep } from '../../policy/derive/derive.js';
import type { DeriveCondition } from '../../policy/derive/derive-rule.js';
import type { Level } from '../../policy/level.js';
import { PathPattern } from '../../policy/paths/path-pattern.js';
import { PLAN_PARTS, type PlanHead, type PlanParts, type PlanTable } from '../../policy/plans/plan-table.js';
import type { PolicyNode } from '../../policy/policy-node.js';
import type { PolicySet } from '../../policy/policy-set.js';
import { type RuleSpec, ruleSpecOf } from '../../policy/rule.js';
import {
  type ConditionSpec,
  type DeriveRuleSpec,
  type DomainHead,
  type DomainSpec,
  inFileOrder,
  type NodeFields,
  type NodeSpec,
  type RuleStepSpec,
  type StepSpec,
  type TableSpec,
} from '../../policy/spec.js';
import type { CidrIntervals } from '../../policy/values/cidr-table.js';

/** A table without the content of its parts, as plain data. */
interface PlanLayout {
  readonly head: PlanHead;
  /** Length of each part in bytes. */
  readonly sizes: Readonly<Record<keyof PlanParts, number>>;
  /** Whether `keys` has single bytes. */
  readonly isByte: boolean;
}

/**
 * Specifications of policies (policy/spec.ts) as a sequence of items. One thread or process sends them to another,
 * which builds the policies slice by slice (see {@link cutSlices}) while it decides requests. The items contain key
 * tables, so they must not be sent elsewhere.
 */
export type PolicyItem =
  /** A domain that the receiver already has and keeps. */
  | { readonly kind: 'kept'; readonly domain: string }
  /** The start of a domain. The following items belong to it, up to `end`. */
  | {
      readonly kind: 'domain';
      readonly head: DomainHead;
      /** The secret keys of all domains, which determine the names of buckets. */
      readonly secretKeys: readonly string[];
    }
  /** The rows of `plans`, for another thread: the index of a table in shared memory, which is passed apart. */
  | { readonly kind: 'shared_plans'; readonly table: number }
  /** The rows, for another process: first their head, with the length of each part, then all bytes of each part. */
  | ({ readonly kind: 'plans' } & PlanLayout)
  | {
      readonly kind: 'plan_bytes';
      readonly part: keyof PlanParts;
      readonly at: number;
      readonly bytes: Uint8Array;
    }
  /** The start of a `derive` step. The following `keys` or `derive` items belong to it. */
  | { readonly kind: 'table'; readonly step: Omit<TableSpec, 'table'> }
  | { readonly kind: 'keys'; readonly pairs: readonly (readonly [string, string])[] }
  | { readonly kind: 'rules'; readonly step: Omit<RuleStepSpec, 'rules'> }
  | { readonly kind: 'derive'; readonly rule: DeriveRuleSpec }
  /**
   * The next node of the tree in file order. `parent` is the 0-based index of its parent among the nodes sent, or -1
   * for the root.
   */
  | {
      readonly kind: 'node';
      readonly parent: number;
      readonly fields: NodeFields;
      readonly rules: readonly RuleSpec[];
    }
  /** The compiled address blocks of a level: the nodes with `key` below the node with index `parent`. */
  | {
      readonly kind: 'intervals';
      readonly parent: number;
      readonly key: string;
      readonly intervals: CidrIntervals;
    }
  /** Compiles a regular expression of a level; see {@link Level.compile}. Takes up to the time of a slice. */
  | { readonly kind: 'compile'; readonly parent: number; readonly key: string; readonly step: number }
  | { readonly kind: 'end' };

type DeriveItem = Extract<PolicyItem, { kind: 'derive' }>;
/** An item that is part of a domain. */
type PartItem = Exclude<PolicyItem, { kind: 'domain' | 'kept' | 'end' }>;

/** Number of table keys per item. */
const PAIRS_PER_ITEM = 16;

/** Number of bytes of a table of plans per item. */
const PLAN_BYTES_PER_ITEM = 262_144;

/** The parts of a node that are sent. */
interface NodeParts {
  readonly fields: NodeFields;
  readonly rules: readonly RuleSpec[];
  /** Levels below the node that are sent in compiled form. */
  readonly levels: Iterable<readonly [string, Level<PolicyNode>]>;
}

/**
 * Yields the policies in effect. Policies for which `isKnown` is true are sent by name only, because the receiver has
 * them. `prepares`: whether to include the compiled levels, for a receiver that matches requests. `tables`: a list to
 * which tables of plans are appended, for a receiver in another thread. Without it, the items contain all their bytes.
 */
export function* policyItems(
  policySet: PolicySet,
  isKnown: (policy: CompiledPolicy) => boolean = () => false,
  { prepares = true, tables }: { readonly prepares?: boolean; readonly tables?: PlanTable[] } = {},
): Generator<PolicyItem> {
  for (const [domain, policy] of policySet.domains) {
    if (isKnown(policy)) {
      yield { kind: 'kept', domain };
      continue;
    }
    const { head, secretKeys, steps, root, plans } = policy;
    yield { kind: 'domain', head, secretKeys: [...secretKeys] };
    if (plans !== undefined) yield* planItems(plans, tables);
    for (const step of steps) yield* stepItems(step);
    yield* nodeItems(root, (node) => node.inFileOrder(), prepares ? partsOfNode : partsWithoutLevels);
    yield { kind: 'end' };
  }
}

/**
 * Yields a domain that was read. `secretKeys` determines the names of its buckets. `tables` is as in
 * {@link policyItems}.
 */
export function* specItems(
  { steps, root, plans, ...head }: DomainSpec,
  secretKeys: ReadonlySet<string>,
  tables?: PlanTable[],
): Generator<PolicyItem> {
  yield { kind: 'domain', head, secretKeys: [...secretKeys] };
  if (plans !== undefined) yield* planItems(plans, tables);
  for (const step of steps) yield* stepItems(step);
  yield* nodeItems(root, ({ children }) => children, partsOfSpec);
  yield { kind: 'end' };
}

function partsOfNode({ fields, rules, levels }: PolicyNode): NodeParts {
  return { fields, rules: rules.map(ruleSpecOf), levels };
}

function partsWithoutLevels(node: PolicyNode): NodeParts {
  return { ...partsOfNode(node), levels: [] };
}

function partsOfSpec(spec: NodeSpec): NodeParts {
  const { fields, rules } = spec;
  return { fields, rules, levels: levelsToPrepare(spec) };
}

/** Returns the layout of a table. */
function planLayout(table: PlanTable): PlanLayout {
  const { slots, keys, values, ...head } = table;
  const sizes = Object.fromEntries(PLAN_PARTS.map((part) => [part, table[part].byteLength]));
  return { head, sizes: sizes as PlanLayout['sizes'], isByte: keys instanceof Uint8Array };
}

/** Returns a table whose parts have their length, and no content yet. */
function emptyPlans({ head, sizes, isByte }: PlanLayout): PlanTable {
  const memory = (part: keyof PlanParts): SharedArrayBuffer => new SharedArrayBuffer(sizes[part]);
  const keys = memory('keys');
  return {
    ...head,
    slots: new Uint32Array(memory('slots')),
    keys: isByte ? new Uint8Array(keys) : new Uint16Array(keys),
    values: new Float64Array(memory('values')),
  };
}

function* planItems(table: PlanTable, tables: PlanTable[] | undefined): Generator<PolicyItem> {
  if (tables !== undefined) {
    yield { kind: 'shared_plans', table: tables.push(table) - 1 };
    return;
  }
  yield { kind: 'plans', ...planLayout(table) };
  for (const part of PLAN_PARTS) {
    const { buffer } = table[part];
    for (let at = 0; at < buffer.byteLength; at += PLAN_BYTES_PER_ITEM) {
      const length = Math.min(PLAN_BYTES_PER_ITEM, buffer.byteLength - at);
      yield { kind: 'plan_bytes', part, at, bytes: new Uint8Array(buffer, at, length) };
    }
  }
}

function* stepItems(step: DeriveStep | StepSpec): Generator<PolicyItem> {
  if (step.kind === 'table') {
    yield { kind: 'table', step: { kind: step.kind, entry: step.entry, source: step.source } };
    let pairs: (readonly [string, string])[] = [];
    for (const pair of step.table) {
      pairs.push(pair);
      if (pairs.length < PAIRS_PER_ITEM) continue;
      yield { kind: 'keys', pairs };
      pairs = [];
    }
    yield { kind: 'keys', pairs };
    return;
  }
  yield { kind: 'rules', step: { kind: step.kind, entry: step.entry, sources: step.sources } };
  for (const { conditions, value } of step.rules) {
    yield { kind: 'derive', rule: { conditions: conditions.map(conditionSpec), value } };
  }
}

function conditionSpec(condition: DeriveCondition | ConditionSpec): ConditionSpec {
  return condition instanceof PathPattern ? { pattern: condition.source } : condition;
}

function* nodeItems<Node>(
  root: Node,
  childrenOf: (node: Node) => readonly Node[],
  partsOf: (node: Node) => NodeParts,
): Generator<PolicyItem> {
  // A level can only be completed after all its nodes.
  const last: PolicyItem[] = [];
  let number = 0;
  for (const { node, parent } of inFileOrder(root, childrenOf)) {
    const { fields, rules, levels } = partsOf(node);
    yield { kind: 'node', parent, fields, rules };
    for (const [key, level] of levels) last.push(...levelItems(number, key, level));
    number++;
  }
  yield* last;
}

function* levelItems(parent: number, key: string, level: Level<PolicyNode>): Generator<PolicyItem> {
  const intervals = level.preparedIntervals();
  if (intervals !== undefined) yield { kind: 'intervals', parent, key, intervals };
  for (let step = 0; step < level.compileSteps; step++) yield { kind: 'compile', parent, key, step };
}

/** Tells whether an item takes so long to add that it needs its own slice. */
export function needsOwnSlice(item: { readonly kind: string }): boolean {
  if (item.kind === 'derive') return (item as DeriveItem).rule.conditions.some(hasAlternatives);
  return item.kind === 'compile' || item.kind === 'plan_bytes';
}

/** Tells whether the condition has braces, which make it several patterns. */
function hasAlternatives(condition: ConditionSpec): boolean {
  return typeof condition === 'object' && condition.pattern.includes('{');
}

/** Builds policies from the received items, one by one. */
export class PolicyReceiver {
  private readonly inEffect: PolicySet | undefined;
  private readonly domains = new Map<string, CompiledPolicy>();
  private builder: TreeBuilder | undefined;
  private plans: PlanTable | undefined;
  private readonly tables: readonly PlanTable[];

  /** `inEffect` has the domains that are kept. `tables` are those that {@link policyItems} appended. */
  constructor(inEffect: PolicySet | undefined, tables: readonly PlanTable[] = []) {
    this.inEffect = inEffect;
    this.tables = tables;
  }

  /** Adds the next item. Throws an Error if a domain to be kept is missing. */
  add(item: PolicyItem): void {
    if (item.kind === 'kept') {
      const policy = this.inEffect?.domains.get(item.domain);
      if (policy === undefined)
        throw new Error(
          `the previous version of the domain ${item.domain} cannot be kept, because it does not exist`,
        );
      this.domains.set(item.domain, policy);
    } else if (item.kind === 'domain') {
      this.builder = new TreeBuilder(item.head, new Set(item.secretKeys));
    } else if (this.builder === undefined) {
      throw new Error(`an item of the kind "${item.kind}" does not belong to a domain`);
    } else if (item.kind === 'end') {
      const policy = this.builder.finish();
      this.domains.set(policy.domain, policy);
      this.builder = undefined;
    } else {
      this.addTo(this.builder, item);
    }
  }

  /** Returns all domains, in the order in which they were received. */
  finish(version: string): PolicySet {
    return { domains: this.domains, version };
  }

  private addTo(builder: TreeBuilder, item: PartItem): void {
    switch (item.kind) {
      case 'shared_plans':
        builder.setPlans(this.tables[item.table] as PlanTable);
        break;
      case 'plans':
        this.plans = emptyPlans(item);
        builder.setPlans(this.plans);
        break;
      case 'plan_bytes':
        if (this.plans === undefined) break;
        new Uint8Array(this.plans[item.part].buffer).set(item.bytes, item.at);
        break;
      case 'table':
        builder.addTable(item.step);
        break;
      case 'keys':
        builder.addKeys(item.pairs);
        break;
      case 'rules':
        builder.addRuleStep(item.step);
        break;
      case 'derive':
        builder.addDeriveRule(item.rule);
        break;
      case 'node':
        builder.addNode(item.parent, item.fields, item.rules);
        break;
      case 'intervals':
        builder.levelBelow(item.parent, item.key)?.setIntervals(item.intervals);
        break;
      case 'compile':
        builder.levelBelow(item.parent, item.key)?.compile(item.step);
    }
  }
}
