import type { Entry } from '../limiter/entry.js';
import type { StoreFailurePolicy } from '../limiter/failure-policy.js';
import { type DeriveStep, RuleStep, TableStep } from './derive/derive.js';
import type { DeriveCondition } from './derive/rule-index.js';
import { MatchWork } from './match-work.js';
import { BucketNames } from './names/bucket-names.js';
import { childPosition, rootPosition, ruleNames, type TreePosition } from './names/stat-name.js';
import { PathPattern } from './paths/path-pattern.js';
import { PlanNodes } from './plans/plan-nodes.js';
import { rateOf } from './plans/plan-rate.js';
import type { PlanTable } from './plans/plan-table.js';
import {
  type Algorithm,
  type DomainSettings,
  type Match,
  PossibleDenial,
  type UnmatchedMode,
} from './policy.js';
import { PolicyNode } from './policy-node.js';
import { isSecretKey } from './redact.js';
import {
  type DeniedResponse,
  type HeaderFamilies,
  namedRule,
  type PhaseSchedule,
  type Rule,
  type RuleSpec,
} from './rule.js';
import {
  type ConditionSpec,
  type DomainHead,
  type NodeFields,
  type StepSpec,
  secretSources,
} from './spec.js';

/**
 * Number of remembered matches, a power of two. The codec returns the same entries for the messages of the busiest
 * keys.
 */
const REMEMBERED = 8;
/** Maximum length of the keys and values of a remembered match, in UTF-16 units, so that it takes little memory. */
const MAX_REMEMBERED_UNITS = 256;

const NO_RULES: readonly Rule[] = [];
const NO_NAMES: readonly string[] = [];

/** One shape for every answer, so that the hot path stays monomorphic. */
class PolicyMatch implements Match {
  readonly rules: readonly Rule[];
  readonly keys: readonly string[];
  readonly hashTagLength: number;
  readonly phase: PhaseSchedule;
  readonly onStoreFailure: StoreFailurePolicy;
  readonly entries: readonly Entry[];
  readonly statNames: readonly string[];
  readonly onUnmatched: UnmatchedMode | undefined;

  constructor(
    rules: readonly Rule[],
    keys: readonly string[],
    hashTagLength: number,
    at: MatchPlace,
    entries: readonly Entry[],
    statNames: readonly string[],
    onUnmatched: UnmatchedMode | undefined,
  ) {
    this.rules = rules;
    this.keys = keys;
    this.hashTagLength = hashTagLength;
    this.phase = at.phase;
    this.onStoreFailure = at.onStoreFailure;
    this.entries = entries;
    this.statNames = statNames;
    this.onUnmatched = onUnmatched;
  }
}

/** Settings of the place where a descriptor ended. */
type MatchPlace = Pick<Match, 'phase' | 'onStoreFailure'>;

/** Returns the answer without a matching rule; `last` is the last node that matched. */
function unmatched(at: MatchPlace, entries: readonly Entry[], last: PolicyNode): PolicyMatch {
  return new PolicyMatch(NO_RULES, NO_NAMES, 0, at, entries, NO_NAMES, last.onUnmatched);
}

/** The parts that a TreeBuilder assembles to a {@link CompiledPolicy}. */
type PolicyParts = Pick<
  CompiledPolicy,
  'head' | 'steps' | 'root' | 'rules' | 'secretKeys' | 'keys' | 'plans' | 'possibleDenial'
>;

/** The policy of a domain. */
export class CompiledPolicy implements DomainSettings {
  readonly head: DomainHead;
  readonly domain: string;
  /** The policy file, with the name that the user gave; if several are merged, separated by commas. */
  readonly file: string;
  /** Phase and failure policy of the file, which apply to nodes without their own. */
  readonly phase: PhaseSchedule;
  readonly onStoreFailure: StoreFailurePolicy;
  readonly responseHeaders: HeaderFamilies | undefined;
  readonly requestHeaders: HeaderFamilies | undefined;
  readonly deniedResponse: DeniedResponse | undefined;
  readonly decisionMetadata: boolean | undefined;
  readonly overrideAlgorithm: Algorithm;
  /**
   * Entry keys with secret values, which are redacted wherever they are shown: the sources of `sha256` tables of all
   * loaded domains.
   */
  readonly secretKeys: ReadonlySet<string>;
  /** The secret keys of this domain's `derive`. */
  readonly ownSecretKeys: ReadonlySet<string>;
  /** The rules of the whole domain that may deny. */
  readonly possibleDenial: PossibleDenial;
  /** Whether any rule has `hold`. */
  readonly hasHolds: boolean;
  /** Whether a rule has `on_over`. */
  readonly hasSoftLimits: boolean;
  /** Whether a rule has `then`. */
  readonly hasSpills: boolean;
  /** Whether a rule has `quota_mode`. */
  readonly hasQuotas: boolean;
  /** Whether a rule has `replaces`. */
  readonly hasReplaces: boolean;
  /** Whether a rule has `priorities`. */
  private readonly hasClasses: boolean;
  /** Whether the policy, or a rule, has the family `ratelimit`, which lists limits. */
  readonly listsLimits: boolean;
  /** All rules of the tree, in file order. */
  readonly rules: readonly Rule[];
  readonly steps: readonly DeriveStep[];
  readonly root: PolicyNode;
  /** The rows of `plans`; undefined without it. */
  readonly plans: PlanTable | undefined;
  /** The entry keys that the tree matches. */
  readonly keys: ReadonlySet<string>;
  private readonly bucketNames: BucketNames;
  /** The latest matches, with the entries that they were asked for at the same index. */
  private readonly latest: (Match | undefined)[] = new Array<Match | undefined>(REMEMBERED).fill(undefined);
  private readonly latestEntries: (readonly Entry[] | undefined)[] = new Array(REMEMBERED).fill(undefined);
  private next = 0;

  constructor({ head, steps, root, rules, secretKeys, keys, plans, possibleDenial }: PolicyParts) {
    this.head = head;
    this.domain = head.domain;
    this.file = head.file;
    this.phase = root.phase;
    this.onStoreFailure = root.onStoreFailure;
    const { responseHeaders, requestHeaders, deniedResponse, decisionMetadata, overrideAlgorithm } =
      head.settings;
    this.responseHeaders = responseHeaders;
    this.requestHeaders = requestHeaders;
    this.deniedResponse = deniedResponse;
    this.decisionMetadata = decisionMetadata;
    this.overrideAlgorithm = overrideAlgorithm;
    this.secretKeys = secretKeys;
    this.hasHolds = rules.some(({ hold }) => hold !== undefined);
    this.hasSpills = rules.some(({ nextLimit }) => nextLimit !== '');
    this.hasQuotas = rules.some(({ quotaMode }) => quotaMode);
    this.hasReplaces = rules.some(({ replaces }) => replaces.length > 0);
    this.hasClasses = rules.some(({ priorities }) => priorities !== undefined);
    this.listsLimits = [head.settings, ...rules].some(
      (one) => one.responseHeaders?.rateLimit === true || one.requestHeaders?.rateLimit === true,
    );
    this.hasSoftLimits = rules.some(({ onOver }) => onOver !== undefined);
    this.ownSecretKeys = secretSources(steps);
    this.keys = keys;
    this.rules = rules;
    this.steps = steps;
    this.root = root;
    this.plans = plans;
    this.possibleDenial = possibleDenial;
    this.bucketNames = new BucketNames(head.domain, secretKeys, plans && new PlanNodes(plans));
  }

  /** Compiles the matchers of the whole tree in steps; see {@link Level.compile}. */
  *compile(): Generator<void, void> {
    for (const node of this.root.withDescendants()) {
      for (const level of node.levels.values()) yield* level.compile();
    }
  }

  /**
   * Runs `derive`, then walks the tree. Never fails, but the result means nothing if {@link MatchWork.exceeded} is set
   * afterwards. Without `work` there are no bounds. The entries must not change afterwards, because the result for the
   * same object is used again.
   */
  match(given: readonly Entry[], work = new MatchWork()): Match {
    const { latest, latestEntries } = this;
    for (let i = 0; i < REMEMBERED; i++) if (latestEntries[i] === given) return latest[i] as Match;
    const match = this.find(given, work);
    if (work.exceeded !== undefined || !isShort(given)) return match;
    latestEntries[this.next] = given;
    latest[this.next] = match;
    this.next = (this.next + 1) & (REMEMBERED - 1);
    return match;
  }

  private find(given: readonly Entry[], work: MatchWork): Match {
    let entries = given;
    for (let i = 0; i < this.steps.length; i++) entries = (this.steps[i] as DeriveStep).apply(entries, work);
    let node = this.root;
    if (entries.length === 0) return unmatched(this, entries, node);
    for (let i = 0; i < entries.length; i++) {
      const { key, value } = entries[i] as Entry;
      const next = node.find(key, value, work);
      if (next === undefined)
        return this.findWithoutClass(entries, node, work) ?? unmatched(this, entries, node);
      node = next;
    }
    if (node.rules.length > 0) return this.matchAt(node, entries);
    return this.findWithoutClass(entries, node, work) ?? unmatched(node, entries, node);
  }

  /**
   * Returns the match of a descriptor that lacks only the entry which names the class of its caller, so that callers
   * cannot bypass a limit by leaving the entry out. Undefined if there is no such limit. `last` is the last node that
   * matched.
   */
  private findWithoutClass(
    entries: readonly Entry[],
    last: PolicyNode,
    work: MatchWork,
  ): PolicyMatch | undefined {
    if (!this.hasClasses) return undefined;
    for (const [at, above] of [this.root, ...last.path()].entries()) {
      for (const child of above.classChildren) {
        const end = nodeBelow(child, entries, at, work);
        if (end?.classEntry !== at) continue;
        const path = entries.toSpliced(at, 0, { key: child.key, value: '' });
        const { node, keys, hashTagLength, statNames } = this.bucketNames.bucketOf(end, path);
        return new PolicyMatch(node.rules, keys, hashTagLength, node, entries, statNames, undefined);
      }
    }
    return undefined;
  }

  /**
   * Returns the result of {@link match} for a descriptor that ends at `end`. `entries` has one entry for each node of
   * the path; only the values that are part of the bucket's name have to be correct.
   */
  matchAt(end: PolicyNode, entries: readonly Entry[]): Match {
    const { node, keys, hashTagLength, statNames } = this.bucketNames.bucketOf(end, entries);
    return new PolicyMatch(node.rules, keys, hashTagLength, node, entries, statNames, undefined);
  }
}

/** Work of trying an entry that a descriptor may lack, and of each lookup below it. */
const [TRY_UNITS, LOOKUP_UNITS] = [2, 16];

/**
 * Returns the node that the entries from index `at` on match below `node`. The result means nothing if `work` is
 * exceeded.
 */
function nodeBelow(
  node: PolicyNode,
  entries: readonly Entry[],
  at: number,
  work: MatchWork,
): PolicyNode | undefined {
  work.charge(TRY_UNITS);
  let below: PolicyNode | undefined = node;
  for (let i = at; i < entries.length && below !== undefined; i++) {
    const { key, value } = entries[i] as Entry;
    below = work.charge(LOOKUP_UNITS) ? below.find(key, value, work) : undefined;
  }
  return below;
}

function isShort(entries: readonly Entry[]): boolean {
  let units = 0;
  for (let i = 0; i < entries.length && units <= MAX_REMEMBERED_UNITS; i++) {
    const { key, value } = entries[i] as Entry;
    units += key.length + value.length + 1;
  }
  return units <= MAX_REMEMBERED_UNITS;
}

/** All domains of one configuration; a reload replaces the whole set. */
export interface PolicySet {
  readonly domains: ReadonlyMap<string, CompiledPolicy>;
  /**
   * 12 hexadecimal digits of a hash over all domains and the names and contents of their files, which identifies the
   * policies of a replica.
   */
  readonly version: string;
}

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
  private readonly possibleDenial: PossibleDenial;

  /** `secretKeys`: the entry keys with secret values, including those of other domains, which affect names. */
  constructor(head: DomainHead, plans: PlanTable | undefined, secretKeys: ReadonlySet<string>) {
    this.head = head;
    this.plans = plans;
    this.possibleDenial = new PossibleDenial(plans);
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
    this.possibleDenial.add(node);
    for (const rule of rules) this.rules.push(rule);
  }

  /** Call it after everything was added. Throws an Error without a node. */
  finish(): CompiledPolicy {
    const { head, steps, rules, secretKeys, keys, plans, possibleDenial } = this;
    const [root] = this.nodes;
    if (root === undefined) throw new Error(`the domain ${head.domain} has no root node`);
    return new CompiledPolicy({ head, steps, root, rules, secretKeys, keys, plans, possibleDenial });
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
  // Otherwise, denied requests of one class would use up what it must leave to the others.
  const isShared = spec.priorities !== undefined;
  const countsOnlyAllowed = fields.isList || spec.hold !== undefined || isPlanned || isShared;
  const rate = spec.rate === undefined ? undefined : rateOf(spec.rate, countsOnlyAllowed);
  return namedRule(spec, rate, ruleNames(spec, rate, index, fields, place));
}

function conditionOf(spec: ConditionSpec): DeriveCondition {
  if (typeof spec !== 'object') return spec;
  const pattern = PathPattern.parse(spec.pattern);
  if (typeof pattern === 'string')
    throw new Error(`"${spec.pattern}" is no longer a valid path pattern: ${pattern}`);
  return pattern;
}

/**
 * Returns the union of the secret keys that each domain declares. An API key stays secret even if it is sent to the
 * wrong domain.
 */
export function allSecretKeys(own: Iterable<ReadonlySet<string>>): ReadonlySet<string> {
  const all = new Set<string>();
  for (const keys of own) for (const key of keys) all.add(key);
  return all;
}

/** The secret keys that any domain of the set declares. */
export function secretKeysOfSet({ domains }: Pick<PolicySet, 'domains'>): ReadonlySet<string> {
  return allSecretKeys(Array.from(domains.values(), ({ ownSecretKeys }) => ownSecretKeys));
}

/** A key that a new `derive` step makes secret, and the existing domains whose bucket names contain its values. */
export interface NewSecret {
  readonly key: string;
  readonly domains: readonly string[];
}

/**
 * Returns the keys that become secret between two sets. Buckets with such a key start over, because their names now
 * contain digests.
 */
export function newSecrets(before: PolicySet, after: PolicySet): readonly NewSecret[] {
  const known = secretKeysOfSet(before);
  const added = [...secretKeysOfSet(after)].filter((key) => !known.has(key));
  if (added.length === 0) return [];
  const policies = [...after.domains.values()].filter(({ domain }) => before.domains.has(domain));
  return added.flatMap((key) => {
    const named = policies.filter(({ ownSecretKeys, keys }) => keys.has(key) && !ownSecretKeys.has(key));
    return named.length === 0 ? [] : [{ key, domains: named.map(({ domain }) => domain) }];
  });
}
