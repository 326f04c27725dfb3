import { CompiledPolicy } from '../../policy/compiled-policy.js';
import { type DeriveStep, RuleStep, TableStep } from '../../policy/derive/derive.js';
import type { DeriveCondition } from '../../policy/derive/derive-rule.js';
import type { Level } from '../../policy/level.js';
import { PathPattern } from '../../policy/paths/path-pattern.js';
import type { DomainPolicy, DomainSettings, PolicySet } from '../../policy/policy.js';
import { type NodeOptions, PolicyNode } from '../../policy/policy-node.js';
import { isSecretKey } from '../../policy/redact.js';
import type { Rule } from '../../policy/rule.js';
import { SharedParts } from '../../policy/shared-parts.js';
import type { CidrIntervals } from '../../policy/values/cidr-table.js';

/**
 * Compiled policies as a row of plain items: how one thread or process hands them to another, which builds them a slice at a time (see
 * {@link cutSlices}) while it decides. They hold key tables, so they go nowhere else.
 */
export type PolicyItem =
  /** A domain that the receiver has already, and keeps. */
  | { readonly kind: 'kept'; readonly domain: string }
  /** Begins a domain; what follows is part of it, up to its `end`. */
  | {
      readonly kind: 'domain';
      readonly domain: string;
      readonly file: string;
      readonly settings: DomainSettings;
      /** What it takes for secrets, those of other domains, too: names are made by them. */
      readonly secretKeys: readonly string[];
      readonly rules: number;
    }
  /** A node of the tree. Its parent is the node that came as the `parent`-th, from 0; -1 for the root. Its first rule is the `ruleIndex`-th of the domain. */
  | {
      readonly kind: 'node';
      readonly parent: number;
      readonly ruleIndex: number;
      readonly options: Omit<NodeOptions, 'parent'>;
    }
  /** What was made of the blocks of a level, the nodes with `key` below the `parent`-th. */
  | {
      readonly kind: 'intervals';
      readonly parent: number;
      readonly key: string;
      readonly intervals: CidrIntervals;
    }
  /** Some of what was made of the patterns of a level, from the `at`-th of `all` words on; the last ones put it to use. */
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
  /** Begins a step of `derive`; `keys` or `derive` items that follow are part of it. */
  | { readonly kind: 'table'; readonly entry: string; readonly source: string }
  | { readonly kind: 'keys'; readonly pairs: readonly (readonly [string, string])[] }
  | { readonly kind: 'rules'; readonly entry: string; readonly sources: readonly string[] }
  | {
      readonly kind: 'derive';
      readonly conditions: readonly TransferredCondition[];
      readonly value: string;
    }
  | { readonly kind: 'end' };

type DeriveItem = Extract<PolicyItem, { kind: 'derive' }>;

type TransferredCondition = string | undefined | { readonly pattern: string };

/** So many keys of a table make one item. */
const PAIRS_PER_ITEM = 16;
/** So many words of what patterns were made into: 256 KB. */
const WORDS_PER_ITEM = 65_536;

/** Takes policies apart; those that `isKnown` names are not sent. Throws an Error for a DomainPolicy that no policy file gave. */
export function* policyItems(
  policySet: PolicySet,
  isKnown: (policy: DomainPolicy) => boolean = () => false,
): Generator<PolicyItem> {
  for (const [domain, policy] of policySet.domains) {
    if (isKnown(policy)) {
      yield { kind: 'kept', domain };
      continue;
    }
    if (!(policy instanceof CompiledPolicy)) throw new Error(`the policy of ${domain} is not compiled`);
    const { file, rules, responseHeaders, deniedResponse, decisionMetadata, overrideAlgorithm } = policy;
    const settings = { responseHeaders, deniedResponse, decisionMetadata, overrideAlgorithm };
    yield { kind: 'domain', domain, file, settings, secretKeys: [...policy.secretKeys], rules: rules.length };
    for (const step of policy.steps) yield* stepItems(step);
    yield* nodeItems(policy);
    yield { kind: 'end' };
  }
}

function* stepItems(step: DeriveStep): Generator<PolicyItem> {
  if (step.kind === 'table') {
    yield { kind: 'table', entry: step.entry, source: step.source };
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
  yield { kind: 'rules', entry: step.entry, sources: step.sources };
  for (const { conditions, value } of step.rules) {
    const plain = conditions.map((condition) =>
      condition instanceof PathPattern ? { pattern: condition.source } : condition,
    );
    yield { kind: 'derive', conditions: plain, value };
  }
}

function* nodeItems({ root, rules }: CompiledPolicy): Generator<PolicyItem> {
  const indexOf = new Map<Rule, number>(rules.map((rule, index) => [rule, index]));
  const open: { readonly node: PolicyNode; readonly parent: number }[] = [{ node: root, parent: -1 }];
  // The nodes of a level must all be there before they are put to use.
  const last: PolicyItem[] = [];
  for (let index = 0; ; index++) {
    const next = open.pop();
    if (next === undefined) break;
    const { node, parent } = next;
    const [first] = node.rules;
    const ruleIndex = first === undefined ? -1 : (indexOf.get(first) ?? -1);
    yield { kind: 'node', parent, ruleIndex, options: optionsOf(node) };
    // Taken from the end: so they come in file order.
    for (const child of [...node.children()].reverse()) open.push({ node: child, parent: index });
    for (const [key, level] of node.levels) last.push(...levelItems(index, key, level));
  }
  yield* last;
}

function* levelItems(parent: number, key: string, level: Level): Generator<PolicyItem> {
  const intervals = level.intervals();
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
  if (item.kind === 'derive') return (item as DeriveItem).conditions.some(standsForMany);
  return item.kind === 'compile' || item.kind === 'patterns';
}

/** Braces are many patterns in one. */
function standsForMany(condition: TransferredCondition): boolean {
  return typeof condition === 'object' && condition.pattern.includes('{');
}

function optionsOf(node: PolicyNode): Omit<NodeOptions, 'parent'> {
  const { key, value, matcher, shareThreshold, detailedMetric, valueToMetric, phase, onStoreFailure, rules } =
    node;
  return { key, value, matcher, shareThreshold, detailedMetric, valueToMetric, phase, onStoreFailure, rules };
}

/** Puts policies together again, item by item. */
export class PolicyBuilder {
  private readonly inForce: PolicySet | undefined;
  private readonly domains = new Map<string, DomainPolicy>();
  private open: OpenDomain | undefined;

  /** `inForce` holds the domains that are kept. */
  constructor(inForce: PolicySet | undefined) {
    this.inForce = inForce;
  }

  /** Takes the next item. Throws an Error for a domain that is to be kept and is not there. */
  add(item: PolicyItem): void {
    if (item.kind === 'kept') {
      const policy = this.inForce?.domains.get(item.domain);
      if (policy === undefined) throw new Error(`the domain ${item.domain} is not there to be kept`);
      this.domains.set(item.domain, policy);
    } else if (item.kind === 'domain') {
      this.open = new OpenDomain(item);
    } else if (this.open === undefined) {
      throw new Error(`a ${item.kind} belongs to no domain`);
    } else if (item.kind === 'end') {
      const policy = this.open.finish();
      this.domains.set(policy.domain, policy);
      this.open = undefined;
    } else {
      this.open.add(item);
    }
  }

  /** All domains, in the order in which they came. */
  finish(version: string): PolicySet {
    return { domains: this.domains, version };
  }
}

/** A domain whose parts are still coming. */
class OpenDomain {
  private readonly head: Extract<PolicyItem, { kind: 'domain' }>;
  private readonly steps: DeriveStep[] = [];
  private readonly nodes: PolicyNode[] = [];
  private readonly rules: Rule[];
  private readonly shared = new SharedParts();
  private readonly keys = new Set<string>();
  private readonly secretKeys: ReadonlySet<string>;
  private table = new Map<string, string>();
  private ruleStep: RuleStep | undefined;
  /** What has come of the patterns of a level. */
  private words = new Int32Array(0);

  constructor(head: Extract<PolicyItem, { kind: 'domain' }>) {
    this.head = head;
    this.secretKeys = new Set(head.secretKeys);
    this.rules = new Array(head.rules);
  }

  add(item: Exclude<PolicyItem, { kind: 'domain' | 'kept' | 'end' }>): void {
    switch (item.kind) {
      case 'node':
        this.addNode(item);
        break;
      case 'intervals':
        this.nodes[item.parent]?.levels.get(item.key)?.takeIntervals(item.intervals);
        break;
      case 'patterns':
        if (item.at === 0) this.words = new Int32Array(item.all);
        this.words.set(item.words, item.at);
        if (item.at + item.words.length < item.all) break;
        this.nodes[item.parent]?.levels.get(item.key)?.takePatterns(this.words);
        break;
      case 'compile':
        this.nodes[item.parent]?.levels.get(item.key)?.compile(item.step);
        break;
      case 'table':
        this.table = new Map();
        this.steps.push(new TableStep(item.entry, item.source, this.table));
        break;
      case 'keys':
        for (const [digest, name] of item.pairs) this.table.set(digest, name);
        break;
      case 'rules':
        this.ruleStep = new RuleStep(item.entry, item.sources);
        this.steps.push(this.ruleStep);
        break;
      case 'derive':
        this.ruleStep?.add({
          conditions: item.conditions.map(conditionFromTransfer),
          value: item.value,
        });
    }
  }

  finish(): CompiledPolicy {
    const { domain, file, settings } = this.head;
    const root = this.nodes[0];
    if (root === undefined) throw new Error(`the domain ${domain} has no root`);
    const { steps, rules, secretKeys, keys } = this;
    return new CompiledPolicy({ domain, file, settings, steps, root, rules, secretKeys, keys });
  }

  private addNode(item: Extract<PolicyItem, { kind: 'node' }>): void {
    const parent = this.nodes[item.parent];
    const { shared } = this;
    const {
      key,
      value,
      matcher,
      shareThreshold,
      detailedMetric,
      valueToMetric,
      phase,
      onStoreFailure,
      rules,
    } = item.options;
    const node = new PolicyNode({
      key: shared.text(key),
      value: shared.text(value),
      matcher,
      shareThreshold,
      detailedMetric,
      valueToMetric,
      parent,
      phase: shared.phase(phase),
      onStoreFailure: shared.failurePolicy(onStoreFailure),
      rules: rules.map((rule) => shared.rule(rule)),
    });
    if (parent !== undefined) this.keys.add(key);
    if (isSecretKey(key, this.secretKeys) !== node.isSecret) node.takeSecret(!node.isSecret);
    parent?.add(node);
    this.nodes.push(node);
    // The rules of the policy are the very objects of its nodes.
    node.rules.forEach((rule, i) => {
      this.rules[item.ruleIndex + i] = rule;
    });
  }
}

function conditionFromTransfer(condition: TransferredCondition): DeriveCondition {
  if (typeof condition !== 'object') return condition;
  const pattern = PathPattern.parse(condition.pattern);
  if (typeof pattern === 'string') throw new Error(`"${condition.pattern}" was a path pattern: ${pattern}`);
  return pattern;
}
