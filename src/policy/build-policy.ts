import { CompiledPolicy } from './compiled-policy.js';
import { type DeriveStep, RuleStep, TableStep } from './derive/derive.js';
import type { DeriveCondition } from './derive/derive-rule.js';
import type { Level } from './level.js';
import { childPosition, rootPosition, ruleNames, type TreePosition } from './names/rule-names.js';
import { PathPattern } from './paths/path-pattern.js';
import type { PlanTable } from './plans/plan-table.js';
import { PolicyNode } from './policy-node.js';
import { PossibleDenial } from './possible-denial.js';
import { isSecretKey } from './redact.js';
import { namedRule, type Rule, type RuleSpec } from './rule.js';
import { SharedParts } from './shared-parts.js';
import {
  type ConditionSpec,
  type DeriveRuleSpec,
  type DomainHead,
  type DomainSpec,
  inFileOrder,
  type NodeFields,
  type NodeSpec,
  type RuleStepSpec,
  secretSources,
  type TableSpec,
} from './spec.js';

/**
 * Builds the tree of a domain from a specification in small parts, so that decisions can run in between. A part takes
 * some microseconds. Longer work (see {@link Level}) is done when it is first needed, or adopted from another thread
 * that has done it.
 */
export class TreeBuilder {
  private readonly head: DomainHead;
  private readonly secretKeys: ReadonlySet<string>;
  private readonly steps: DeriveStep[] = [];
  private readonly nodes: PolicyNode[] = [];
  /** The last node and its ancestors, from the root. */
  private readonly ancestors: { readonly number: number; readonly place: TreePosition }[] = [];
  private readonly rules: Rule[] = [];
  private readonly keys = new Set<string>();
  private readonly shared = new SharedParts();
  private table = new Map<string, string>();
  private ruleStep: RuleStep | undefined;
  private plans: PlanTable | undefined;
  private denial = new PossibleDenial(undefined);

  /** `secretKeys`: the entry keys with secret values, including those of other domains, which affect names. */
  constructor(head: DomainHead, secretKeys: ReadonlySet<string>) {
    this.head = head;
    this.secretKeys = secretKeys;
  }

  /** Sets the rows of `plans`, before the first node is added. */
  setPlans(plans: PlanTable): void {
    this.plans = plans;
    this.denial = new PossibleDenial(plans);
  }

  /** Starts a table of `derive`; {@link addKeys} fills it. */
  addTable({ entry, source }: Omit<TableSpec, 'table'>): void {
    this.table = new Map();
    this.steps.push(new TableStep(entry, source, this.table));
  }

  /** Adds API keys, as digest and tenant, to the last table. */
  addKeys(pairs: Iterable<readonly [string, string]>): void {
    for (const [digest, tenant] of pairs) this.table.set(digest, tenant);
  }

  /** Starts rules of `derive`; {@link addDeriveRule} adds them. */
  addRuleStep({ entry, sources }: Omit<RuleStepSpec, 'rules'>): void {
    this.ruleStep = new RuleStep(entry, sources);
    this.steps.push(this.ruleStep);
  }

  /**
   * Adds a rule to the last {@link addRuleStep}. Braces in its patterns expand to many, which may take 1 ms. Throws an
   * Error for an invalid pattern.
   */
  addDeriveRule({ conditions, value }: DeriveRuleSpec): void {
    this.ruleStep?.add({ conditions: conditions.map(conditionOf), value });
  }

  /**
   * Adds the next node in file order. `parent` is the number of its parent, counted from 0 in the order of addition; -1
   * for the root, which comes first. Throws an Error unless the parent is the last node or one of its ancestors.
   */
  addNode(parent: number, given: NodeFields, ruleSpecs: readonly RuleSpec[]): void {
    const { shared, secretKeys } = this;
    const above = this.nodes[parent];
    const fields: NodeFields = {
      ...given,
      key: shared.text(given.key),
      value: shared.text(given.value),
      phase: shared.phase(given.phase),
      onStoreFailure: shared.failurePolicy(given.onStoreFailure),
    };
    const place = this.nextPosition(parent, fields);
    const rules = ruleSpecs.map((spec, index) => this.ruleOf(spec, index, fields, place));
    const isSecret = isSecretKey(fields.key, secretKeys);
    const node = new PolicyNode({ fields, parent: above, rules, isSecret, plans: this.plans });
    if (above !== undefined) {
      above.add(node);
      this.keys.add(fields.key);
    }
    this.nodes.push(node);
    this.denial.add(node);
    for (const rule of rules) this.rules.push(rule);
  }

  /** Returns the nodes with one key below the `parent`-th node, after they were added. */
  levelBelow(parent: number, key: string): Level<PolicyNode> | undefined {
    return this.nodes[parent]?.levels.get(key);
  }

  /** Returns the policy, after everything was added. Throws an Error without a node. */
  finish(): CompiledPolicy {
    const { head, steps, rules, secretKeys, keys, plans, denial } = this;
    const [root] = this.nodes;
    if (root === undefined) throw new Error(`the domain ${head.domain} has no root node`);
    return new CompiledPolicy({ head, steps, root, rules, secretKeys, keys, plans, denial });
  }

  private nextPosition(parent: number, fields: NodeFields): TreePosition {
    const { ancestors } = this;
    while (ancestors.length > 0 && ancestors.at(-1)?.number !== parent) ancestors.pop();
    const above = ancestors.at(-1);
    if (above === undefined && this.nodes.length > 0) throw new Error(`node ${parent} is not open`);
    const place =
      above === undefined
        ? rootPosition(this.head.domain)
        : childPosition(above.place, fields, this.secretKeys);
    ancestors.push({ number: this.nodes.length, place });
    return place;
  }

  private ruleOf(spec: RuleSpec, index: number, fields: NodeFields, place: TreePosition): Rule {
    const { shared } = this;
    // A denied request has no token, so nothing would give back hits that it counted.
    // Otherwise, a raised limit would have no effect on a customer whose denied requests were counted.
    const isPlanned = spec.plan !== undefined;
    const allOrNothing = fields.isList || spec.hold !== undefined || isPlanned;
    const rate = spec.rate === undefined ? undefined : shared.rate(spec.rate, allOrNothing);
    const parts = {
      name: shared.text(spec.name),
      rate,
      hold: shared.hold(spec.hold),
      phase: shared.phase(spec.phase),
      replaces: shared.names(spec.replaces),
      onStoreFailure: shared.failurePolicy(spec.onStoreFailure),
    };
    const names = ruleNames(spec, rate, index, fields, place);
    return namedRule(spec, parts, {
      path: names.path,
      digest: names.digest,
      statName: names.statName,
      bucketSuffix: shared.text(names.bucketSuffix),
      statSuffix: shared.text(names.statSuffix),
    });
  }
}

/** Runs a {@link TreeBuilder} to its end. By default, `secretKeys` are those of the domain alone. */
export function buildPolicy(
  spec: DomainSpec,
  secretKeys: ReadonlySet<string> = secretSources(spec.steps),
): CompiledPolicy {
  const { steps, root, plans, ...head } = spec;
  const builder = new TreeBuilder(head, secretKeys);
  if (plans !== undefined) builder.setPlans(plans);
  for (const step of steps) {
    if (step.kind === 'table') {
      builder.addTable(step);
      builder.addKeys(step.table);
    } else {
      builder.addRuleStep(step);
      for (const rule of step.rules) builder.addDeriveRule(rule);
    }
  }
  for (const { node, parent } of inFileOrder(root, ({ children }) => children)) {
    builder.addNode(parent, node.fields, node.rules);
  }
  return builder.finish();
}

/** Options of nodes that are only used to prepare their values. */
const DETACHED = { parent: undefined, rules: [], isSecret: false } as const;
const NO_LEVELS: ReadonlyMap<string, Level<PolicyNode>> = new Map();

/**
 * Returns the levels below a node that need long preparation (see {@link Level}), by key, so that one thread can do it
 * for another one that builds the tree.
 */
export function levelsToPrepare({ fields, children }: NodeSpec): ReadonlyMap<string, Level<PolicyNode>> {
  const costly = children.filter(({ fields }) => fields.matcher !== undefined);
  if (costly.length === 0) return NO_LEVELS;
  const parent = new PolicyNode({ ...DETACHED, fields });
  for (const child of costly) parent.add(new PolicyNode({ ...DETACHED, fields: child.fields }));
  return parent.levels;
}

function conditionOf(spec: ConditionSpec): DeriveCondition {
  if (typeof spec !== 'object') return spec;
  const pattern = PathPattern.parse(spec.pattern);
  if (typeof pattern === 'string')
    throw new Error(`"${spec.pattern}" is no longer a valid path pattern: ${pattern}`);
  return pattern;
}
