import type { Entry, StoreFailurePolicy } from '../limiter/entry.js';
import type { DeriveStep } from './derive/derive.js';
import type { Level } from './level.js';
import { EXCEEDED, unboundedWork } from './match-work.js';
import { BucketNames } from './names/bucket-names.js';
import { namingSteps } from './names/naming-steps.js';
import { fixedStatName } from './names/stat-name.js';
import type { Algorithm, DomainPolicy, DomainSettings, Exceeded, Match } from './policy.js';
import type { PolicyNode } from './policy-node.js';
import { PossibleDenial } from './possible-denial.js';
import { isSecretKey } from './redact.js';
import type { DeniedResponse, PhaseSchedule, ResponseHeaders, Rule } from './rule.js';

const NO_RULES: readonly Rule[] = [];
const NO_NAMES: readonly string[] = [];
/** So many are named anew in a step: a digest of each one's value takes some 20 microseconds. */
const NODES_OF_A_STEP = 16;

/** One shape for every answer, so that the hot path stays monomorphic. */
class PolicyMatch implements Match {
  readonly rules: readonly Rule[];
  readonly keys: readonly string[];
  readonly tagLength: number;
  readonly phase: PhaseSchedule;
  readonly onStoreFailure: StoreFailurePolicy;
  readonly entries: readonly Entry[];
  readonly statNames: readonly string[];
  readonly exceeded: Exceeded | undefined;

  constructor(
    rules: readonly Rule[],
    keys: readonly string[],
    tagLength: number,
    at: { readonly phase: PhaseSchedule; readonly onStoreFailure: StoreFailurePolicy },
    entries: readonly Entry[],
    statNames: readonly string[],
    exceeded: Exceeded | undefined,
  ) {
    this.rules = rules;
    this.keys = keys;
    this.tagLength = tagLength;
    this.phase = at.phase;
    this.onStoreFailure = at.onStoreFailure;
    this.entries = entries;
    this.statNames = statNames;
    this.exceeded = exceeded;
  }
}

/** What a policy file compiles to. */
export class CompiledPolicy implements DomainPolicy {
  readonly domain: string;
  readonly file: string;
  readonly phase: PhaseSchedule;
  readonly onStoreFailure: StoreFailurePolicy;
  readonly responseHeaders: ResponseHeaders | undefined;
  readonly deniedResponse: DeniedResponse | undefined;
  readonly decisionMetadata: boolean | undefined;
  readonly overrideAlgorithm: Algorithm;
  /** Those of `derive`, and once the policy is in force those of all domains: see {@link takeSecrets}. */
  secretKeys: ReadonlySet<string>;
  rules: readonly Rule[];
  readonly steps: readonly DeriveStep[];
  readonly root: PolicyNode;
  private names: BucketNames;
  private ofTree: ReadonlySet<string> | undefined;
  private ofAllRules: PossibleDenial | undefined;

  constructor(options: {
    readonly domain: string;
    readonly file: string;
    readonly settings: DomainSettings;
    readonly steps: readonly DeriveStep[];
    readonly root: PolicyNode;
    readonly rules: readonly Rule[];
    /** What nodes and rules take for secrets already; what `steps` say when absent. */
    readonly secretKeys?: ReadonlySet<string>;
    /** See {@link keys}; looked for when absent. */
    readonly keys?: ReadonlySet<string>;
  }) {
    this.domain = options.domain;
    this.file = options.file;
    this.phase = options.root.phase;
    this.onStoreFailure = options.root.onStoreFailure;
    const { responseHeaders, deniedResponse, decisionMetadata, overrideAlgorithm } = options.settings;
    this.responseHeaders = responseHeaders;
    this.deniedResponse = deniedResponse;
    this.decisionMetadata = decisionMetadata;
    this.overrideAlgorithm = overrideAlgorithm;
    this.secretKeys = options.secretKeys ?? secretKeysOf(options.steps);
    this.ofTree = options.keys;
    this.rules = options.rules;
    this.steps = options.steps;
    this.root = options.root;
    this.names = new BucketNames(options.domain, this.secretKeys);
  }

  get denial(): PossibleDenial {
    this.ofAllRules ??= new PossibleDenial(() => this.root.nodesBelow(Number.POSITIVE_INFINITY));
    return this.ofAllRules;
  }

  /** The entry keys that the tree matches. */
  get keys(): ReadonlySet<string> {
    this.ofTree ??= keysBelow(this.root);
    return this.ofTree;
  }

  /**
   * Makes the values of exactly these entry keys secrets, beside credentials: they enter names as digests, and are redacted where they are shown, in the
   * values of the policy itself, too. Requests under way may meet either names. Walks the tree if one of its own keys becomes a secret, or is one no more:
   * a load does that before it hands the policy over (settle-domains.ts). Where decisions go on meanwhile it is done in steps, one such walk at a time.
   */
  *takeSecrets(secretKeys: ReadonlySet<string>): Generator<void, void> {
    const before = this.secretKeys;
    const changed = [
      ...[...before].filter((key) => !secretKeys.has(key)),
      ...[...secretKeys].filter((key) => !before.has(key)),
    ];
    if (changed.length === 0) return;
    this.secretKeys = secretKeys;
    this.names = new BucketNames(this.domain, secretKeys);
    if (!changed.some((key) => this.keys.has(key))) return;
    yield* this.renameTree();
    // What was named during the walk may be remembered by its old name.
    this.names = new BucketNames(this.domain, secretKeys);
  }

  private *renameTree(): Generator<void, void> {
    const renamed = new Map<Rule, Rule>();
    yield* this.renameBelow(this.root, '', false, renamed);
    this.rules = this.rules.map((rule) => renamed.get(rule) ?? rule);
  }

  private *renameBelow(
    parent: PolicyNode,
    above: string,
    renames: boolean,
    renamed: Map<Rule, Rule>,
  ): Generator<void, void> {
    let left = NODES_OF_A_STEP;
    for (const node of parent.children()) {
      const isSecret = isSecretKey(node.key, this.secretKeys);
      const differs = renames || isSecret !== node.isSecret;
      if (differs) node.takeSecret(isSecret);
      const path = above === '' ? node.label : `${above}/${node.label}`;
      if (differs) this.rename(node, path, renamed);
      yield* this.renameBelow(node, path, differs, renamed);
      if (--left > 0) continue;
      left = NODES_OF_A_STEP;
      yield;
    }
    // However few they are, as there may be many such parents.
    if (left < NODES_OF_A_STEP) yield;
  }

  private rename(node: PolicyNode, path: string, renamed: Map<Rule, Rule>): void {
    if (node.rules.length === 0) return;
    const statName = fixedStatName(this.domain, node.way(), node.detailedMetric, this.secretKeys);
    const rules = node.rules.map((rule) => ({
      ...rule,
      path: rule.statSuffix === '' ? path : `${path}[${rule.statSuffix.slice(1)}]`,
      statName: statName === '' ? '' : statName + rule.statSuffix,
    }));
    rules.forEach((rule, i) => {
      renamed.set(node.rules[i] as Rule, rule);
    });
    node.renameRules(rules);
  }

  match(given: readonly Entry[], work = unboundedWork()): Match {
    let entries = given;
    for (let i = 0; i < this.steps.length; i++) {
      const step = this.steps[i] as DeriveStep;
      const derived = step.apply(entries, work);
      if (derived === EXCEEDED) return this.exceeded(entries, this, step.entry, this.denial);
      entries = derived;
    }
    const count = entries.length;
    if (count === 0) return new PolicyMatch(NO_RULES, NO_NAMES, 0, this, entries, NO_NAMES, undefined);
    let node = this.root;
    for (let i = 0; i < count; i++) {
      const { key, value } = entries[i] as Entry;
      const next = node.find(key, value, work);
      if (next === undefined) {
        return new PolicyMatch(NO_RULES, NO_NAMES, 0, this, entries, NO_NAMES, undefined);
      }
      if (next === EXCEEDED) {
        const level = node.levels.get(key) as Level;
        return this.exceeded(entries, node, key, level.denialBelow(count - 1 - i));
      }
      node = next;
    }
    if (node.rules.length === 0) {
      return new PolicyMatch(NO_RULES, NO_NAMES, 0, node, entries, NO_NAMES, undefined);
    }
    const { entering } = node;
    let steps = 0;
    for (let i = 0; i < entering.length; i++) {
      steps += namingSteps(entries[entering[i] as number] as Entry);
    }
    if (steps > 0 && !work.invest(steps)) {
      const { key } = entries[entering[0] as number] as Entry;
      return this.exceeded(entries, node, key, new PossibleDenial(() => [node]));
    }
    const { keys, tagLength, statNames } = this.names.nameOf(node, entries);
    return new PolicyMatch(node.rules, keys, tagLength, node, entries, statNames, undefined);
  }

  private exceeded(
    entries: readonly Entry[],
    at: Pick<DomainPolicy, 'phase' | 'onStoreFailure'>,
    key: string,
    denial: PossibleDenial,
  ): Match {
    return new PolicyMatch(NO_RULES, NO_NAMES, 0, at, entries, NO_NAMES, { key, denial });
  }
}

/** Entry keys whose values are API keys: the sources of `sha256` tables. */
export function secretKeysOf(steps: readonly DeriveStep[]): ReadonlySet<string> {
  return new Set(steps.flatMap((step) => (step.kind === 'table' ? [step.source] : [])));
}

function keysBelow(root: PolicyNode): ReadonlySet<string> {
  const keys = new Set<string>();
  const visit = (node: PolicyNode): void => {
    for (const key of node.levels.keys()) keys.add(key);
    for (const child of node.children()) visit(child);
  };
  visit(root);
  return keys;
}
