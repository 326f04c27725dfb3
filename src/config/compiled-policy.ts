import type { Entry, PhaseSchedule, Rule, StoreFailurePolicy } from '../limiter/rule.js';
import { BucketNames } from './bucket-names.js';
import type { DeriveStep } from './derive.js';
import type { DomainPolicy, Match, ResponseHeaders } from './policy.js';
import type { PolicyNode } from './policy-node.js';

/** One shape for every answer, so that the hot path stays monomorphic. */
class PolicyMatch implements Match {
  readonly rule: Rule | undefined;
  readonly key: string;
  readonly tagLength: number;
  readonly phase: PhaseSchedule;
  readonly onStoreFailure: StoreFailurePolicy;
  readonly entries: readonly Entry[];
  readonly statName: string;

  constructor(
    rule: Rule | undefined,
    key: string,
    tagLength: number,
    at: { readonly phase: PhaseSchedule; readonly onStoreFailure: StoreFailurePolicy },
    entries: readonly Entry[],
    statName: string,
  ) {
    this.rule = rule;
    this.key = key;
    this.tagLength = tagLength;
    this.phase = at.phase;
    this.onStoreFailure = at.onStoreFailure;
    this.entries = entries;
    this.statName = statName;
  }
}

/** What a policy file compiles to. */
export class CompiledPolicy implements DomainPolicy {
  readonly domain: string;
  readonly file: string;
  readonly phase: PhaseSchedule;
  readonly onStoreFailure: StoreFailurePolicy;
  readonly responseHeaders: ResponseHeaders | undefined;
  readonly secretKeys: ReadonlySet<string>;
  readonly rules: readonly Rule[];
  readonly steps: readonly DeriveStep[];
  readonly root: PolicyNode;
  private readonly names: BucketNames;

  constructor(options: {
    readonly domain: string;
    readonly file: string;
    readonly responseHeaders: ResponseHeaders | undefined;
    readonly steps: readonly DeriveStep[];
    readonly root: PolicyNode;
    readonly rules: readonly Rule[];
  }) {
    this.domain = options.domain;
    this.file = options.file;
    this.phase = options.root.phase;
    this.onStoreFailure = options.root.onStoreFailure;
    this.responseHeaders = options.responseHeaders;
    this.secretKeys = secretKeysOf(options.steps);
    this.rules = options.rules;
    this.steps = options.steps;
    this.root = options.root;
    this.names = new BucketNames(options.domain, this.secretKeys);
  }

  /** Runs every step of `derive`, in order. */
  derive(given: readonly Entry[]): readonly Entry[] {
    let entries = given;
    for (let i = 0; i < this.steps.length; i++) entries = (this.steps[i] as DeriveStep).apply(entries);
    return entries;
  }

  match(given: readonly Entry[]): Match {
    const entries = this.derive(given);
    if (entries.length === 0) return new PolicyMatch(undefined, '', 0, this, entries, '');
    let node = this.root;
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i] as Entry;
      const next = node.find(entry.key, entry.value);
      if (next === undefined) return new PolicyMatch(undefined, '', 0, this, entries, '');
      node = next;
    }
    if (node.rule === undefined) return new PolicyMatch(undefined, '', 0, node, entries, '');
    const { key, tagLength, statName } = this.names.nameOf(node, entries);
    return new PolicyMatch(node.rule, key, tagLength, node, entries, statName);
  }
}

/** Entry keys whose values are API keys: the sources of `sha256` tables. */
export function secretKeysOf(steps: readonly DeriveStep[]): ReadonlySet<string> {
  return new Set(steps.flatMap((step) => (step.kind === 'table' ? [step.source] : [])));
}
