import { CompiledPolicy } from './compiled-policy.js';
import { type DeriveStep, RuleStep, TableStep } from './derive/derive.js';
import type { DeriveCondition } from './derive/rule-index.js';
import { childPosition, rootPosition, ruleNames, type TreePosition } from './names/stat-name.js';
import { PathPattern } from './paths/path-pattern.js';
import { rateOf } from './plans/plan-rate.js';
import type { PlanTable } from './plans/plan-table.js';
import { PolicyNode } from './policy-node.js';
import { PossibleDenial } from './possible-denial.js';
import { isSecretKey } from './redact.js';
import { namedRule, type Rule, type RuleSpec } from './rule.js';
import type { ConditionSpec, DomainHead, NodeFields, StepSpec } from './spec.js';

/** Number of rules of `derive` that are compiled at once. */
const RULES_AT_ONCE = 16;

/** A node of a specification, to be added to a tree in file order. */
export interface PlacedNode {
  /** Number of the parent, counted from 0 in file order; -1 for the root, which comes first. */
  readonly parent: number;
  readonly fields: NodeFields;
  readonly rules: readonly RuleSpec[];
}

/** Builds the tree of a domain node by node, so that decisions can run in between. A node takes some microseconds. */
export class TreeBuilder {
  private readonly head: DomainHead;
  private readonly secretKeys: ReadonlySet<string>;
  private readonly steps: DeriveStep[] = [];
  private readonly nodes: PolicyNode[] = [];
  /** The last node and its ancestors, from the root. */
  private readonly ancestors: { readonly number: number; readonly place: TreePosition }[] = [];
  private readonly rules: Rule[] = [];
  private readonly keys = new Set<string>();
  private readonly plans: PlanTable | undefined;
  private readonly denial: PossibleDenial;

  /** `secretKeys`: the entry keys with secret values, including those of other domains, which affect names. */
  constructor(head: DomainHead, plans: PlanTable | undefined, secretKeys: ReadonlySet<string>) {
    this.head = head;
    this.plans = plans;
    this.denial = new PossibleDenial(plans);
    this.secretKeys = secretKeys;
  }

  /**
   * Adds the items of `derive`, and yields after every few rules: braces in a pattern expand to many patterns, which
   * may take 1 ms. Throws an Error for an invalid pattern.
   */
  *addSteps(steps: readonly StepSpec[]): Generator<void, void> {
    for (const step of steps) {
      if (step.kind === 'table') {
        this.steps.push(new TableStep(step.entry, step.source, step.table));
        continue;
      }
      const ruleStep = new RuleStep(step.entry, step.sources);
      this.steps.push(ruleStep);
      for (const [i, { conditions, value }] of step.rules.entries()) {
        if (i % RULES_AT_ONCE === RULES_AT_ONCE - 1) yield;
        ruleStep.add({ conditions: conditions.map(conditionOf), value });
      }
    }
  }

  /** Adds the next node in file order. Throws an Error unless its parent is the last node or one of its ancestors. */
  addNode({ parent, fields, rules: ruleSpecs }: PlacedNode): void {
    const above = this.nodes[parent];
    const place = this.nextPosition(parent, fields);
    const rules = ruleSpecs.map((spec, index) => ruleOf(spec, index, fields, place));
    const isSecret = isSecretKey(fields.key, this.secretKeys);
    const node = new PolicyNode({ fields, parent: above, rules, isSecret, plans: this.plans });
    if (above !== undefined) {
      above.add(node);
      this.keys.add(fields.key);
    }
    this.nodes.push(node);
    this.denial.add(node);
    for (const rule of rules) this.rules.push(rule);
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
}

function ruleOf(spec: RuleSpec, index: number, fields: NodeFields, place: TreePosition): Rule {
  // A denied request has no token, so nothing would give back hits that it counted.
  // Otherwise, a raised limit would have no effect on a customer whose denied requests were counted.
  const isPlanned = spec.plan !== undefined;
  const allOrNothing = fields.isList || spec.hold !== undefined || isPlanned;
  const rate = spec.rate === undefined ? undefined : rateOf(spec.rate, allOrNothing);
  return namedRule(spec, rate, ruleNames(spec, rate, index, fields, place));
}

function conditionOf(spec: ConditionSpec): DeriveCondition {
  if (typeof spec !== 'object') return spec;
  const pattern = PathPattern.parse(spec.pattern);
  if (typeof pattern === 'string')
    throw new Error(`"${spec.pattern}" is no longer a valid path pattern: ${pattern}`);
  return pattern;
}
