import { levelsToPrepare, TreeBuilder } from '../../policy/build-policy.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import type { DeriveStep } from '../../policy/derive/derive.js';
import type { DeriveCondition } from '../../policy/derive/derive-rule.js';
import type { Level } from '../../policy/level.js';
import { PathPattern } from '../../policy/paths/path-pattern.js';
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

/**
 * Specifications of policies (policy/spec.ts) as a row of items: how one thread or process hands them to another, which
 * builds the policies a slice at a time (see {@link cutSlices}) while it decides. They hold key tables, so they go
 * nowhere else.
 */
export type PolicyItem =
  /** A domain that the receiver has already, and keeps. */
  | { readonly kind: 'kept'; readonly domain: string }
  /** Begins a domain; what follows is part of it, up to its `end`. */
  | {
      readonly kind: 'domain';
      readonly head: DomainHead;
      /** What it takes for secrets, those of other domains, too: names are made by them. */
      readonly secretKeys: readonly string[];
    }
  /** Begins a step of `derive`; `keys` or `derive` items that follow are part of it. */
  | { readonly kind: 'table'; readonly step: Omit<TableSpec, 'table'> }
  | { readonly kind: 'keys'; readonly pairs: readonly (readonly [string, string])[] }
  | { readonly kind: 'rules'; readonly step: Omit<RuleStepSpec, 'rules'> }
  | { readonly kind: 'derive'; readonly rule: DeriveRuleSpec }
  /**
   * The next node of the tree in file order. Its parent is the node that came as the `parent`-th, from 0; -1 for the
   * root.
   */
  | {
      readonly kind: 'node';
      readonly parent: number;
      readonly fields: NodeFields;
      readonly rules: readonly RuleSpec[];
    }
  /** What was made of the blocks of a level, the nodes with `key` below the `parent`-th. */
  | {
      readonly kind: 'intervals';
      readonly parent: number;
      readonly key: string;
      readonly intervals: CidrIntervals;
    }
  /**
   * Some of what was made of the patterns of a level, from the `at`-th of `all` words on; the last ones put it to use.
   */
  | {
      readonly kind: 'patterns';
      readonly parent: number;
      readonly key: string;
      readonly at: number;
      readonly all: number;
      readonly words: Int32Array;
    }
  /** Compiles some of the regular expressions of a level; see {@link Level.compile}. Takes as long as a slice may. */
  | { readonly kind: 'compile'; readonly parent: number; readonly key: string; readonly step: number }
  | { readonly kind: 'end' };

type DeriveItem = Extract<PolicyItem, { kind: 'derive' }>;
/** An item that is part of a domain. */
type PartItem = Exclude<PolicyItem, { kind: 'domain' | 'kept' | 'end' }>;

/** So many keys of a table make one item. */
const PAIRS_PER_ITEM = 16;
/** So many words of what patterns were made into: 256 KB. */
const WORDS_PER_ITEM = 65_536;

/** What is sent of a node. */
interface NodeParts {
  readonly fields: NodeFields;
  readonly rules: readonly RuleSpec[];
  /** Levels below it of which something is prepared for the receiver. */
  readonly levels: Iterable<readonly [string, Level<PolicyNode>]>;
}

/**
 * The policies in force; of those that `isKnown` names, only that the receiver has them. `prepares`: with what takes
 * long to be made of their levels, for whoever matches by them.
 */
export function* policyItems(
  policySet: PolicySet,
  isKnown: (policy: CompiledPolicy) => boolean = () => false,
  prepares = true,
): Generator<PolicyItem> {
  for (const [domain, policy] of policySet.domains) {
    if (isKnown(policy)) {
      yield { kind: 'kept', domain };
      continue;
    }
    const { head, secretKeys, steps, root } = policy;
    yield { kind: 'domain', head, secretKeys: [...secretKeys] };
    for (const step of steps) yield* stepItems(step);
    yield* nodeItems(root, (node) => node.inFileOrder(), prepares ? partsOfNode : bareParts);
    yield { kind: 'end' };
  }
}

/** A domain that was read, whose names are made by `secretKeys`. */
export function* specItems(
  { steps, root, ...head }: DomainSpec,
  secretKeys: ReadonlySet<string>,
): Generator<PolicyItem> {
  yield { kind: 'domain', head, secretKeys: [...secretKeys] };
  for (const step of steps) yield* stepItems(step);
  yield* nodeItems(root, ({ children }) => children, partsOfSpec);
  yield { kind: 'end' };
}

function partsOfNode({ fields, rules, levels }: PolicyNode): NodeParts {
  return { fields, rules: rules.map(ruleSpecOf), levels };
}

function bareParts(node: PolicyNode): NodeParts {
  return { ...partsOfNode(node), levels: [] };
}

function partsOfSpec(spec: NodeSpec): NodeParts {
  const { fields, rules } = spec;
  return { fields, rules, levels: levelsToPrepare(spec) };
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
  // The nodes of a level must all be there before they are put to use.
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
  const words = level.preparedPatterns();
  for (let at = 0; words !== undefined && at < words.length; at += WORDS_PER_ITEM) {
    yield {
      kind: 'patterns',
      parent,
      key,
      at,
      all: words.length,
      words: words.slice(at, at + WORDS_PER_ITEM),
    };
  }
  for (let step = 0; step < level.compileSteps; step++) yield { kind: 'compile', parent, key, step };
}

/** Whether an item takes so long to be added that it is a slice of its own. */
export function takesLong(item: { readonly kind: string }): boolean {
  if (item.kind === 'derive') return (item as DeriveItem).rule.conditions.some(standsForMany);
  return item.kind === 'compile' || item.kind === 'patterns';
}

/** Braces are many patterns in one. */
function standsForMany(condition: ConditionSpec): boolean {
  return typeof condition === 'object' && condition.pattern.includes('{');
}

/** Builds the policies that come, item by item. */
export class PolicyReceiver {
  private readonly inForce: PolicySet | undefined;
  private readonly domains = new Map<string, CompiledPolicy>();
  private builder: TreeBuilder | undefined;
  /** What has come of the patterns of a level. */
  private words = new Int32Array(0);

  /** `inForce` holds the domains that are kept. */
  constructor(inForce: PolicySet | undefined) {
    this.inForce = inForce;
  }

  /** Takes the next item. Throws an Error for a domain that is to be kept and is not there. */
  add(item: PolicyItem): void {
    if (item.kind === 'kept') {
      const policy = this.inForce?.domains.get(item.domain);
      if (policy === undefined) throw new Error(`the domain ${item.domain} to keep does not exist`);
      this.domains.set(item.domain, policy);
    } else if (item.kind === 'domain') {
      this.builder = new TreeBuilder(item.head, new Set(item.secretKeys));
    } else if (this.builder === undefined) {
      throw new Error(`a ${item.kind} belongs to no domain`);
    } else if (item.kind === 'end') {
      const policy = this.builder.finish();
      this.domains.set(policy.domain, policy);
      this.builder = undefined;
    } else {
      this.addTo(this.builder, item);
    }
  }

  /** All domains, in the order in which they came. */
  finish(version: string): PolicySet {
    return { domains: this.domains, version };
  }

  private addTo(builder: TreeBuilder, item: PartItem): void {
    switch (item.kind) {
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
      case 'patterns':
        if (item.at === 0) this.words = new Int32Array(item.all);
        this.words.set(item.words, item.at);
        if (item.at + item.words.length < item.all) break;
        builder.levelBelow(item.parent, item.key)?.setPatterns(this.words);
        break;
      case 'compile':
        builder.levelBelow(item.parent, item.key)?.compile(item.step);
    }
  }
}
