import type {
  DeniedResponse,
  Entry,
  PhaseSchedule,
  ResponseHeaders,
  Rule,
  StoreFailurePolicy,
} from '../limiter/rule.js';
import { BucketNames } from './bucket-names.js';
import type { DeriveStep } from './derive.js';
import type { Algorithm, DomainPolicy, DomainSettings, Match } from './policy.js';
import type { PolicyNode } from './policy-node.js';

const NO_RULES: readonly Rule[] = [];
const NO_NAMES: readonly string[] = [];

/** One shape for every answer, so that the hot path stays monomorphic. */
class PolicyMatch implements Match {
  readonly rules: readonly Rule[];
  readonly keys: readonly string[];
  readonly tagLength: number;
  readonly phase: PhaseSchedule;
  readonly onStoreFailure: StoreFailurePolicy;
  readonly entries: readonly Entry[];
  readonly statNames: readonly string[];

  constructor(
    rules: readonly Rule[],
    keys: readonly string[],
    tagLength: number,
    at: { readonly phase: PhaseSchedule; readonly onStoreFailure: StoreFailurePolicy },
    entries: readonly Entry[],
    statNames: readonly string[],
  ) {
    this.rules = rules;
    this.keys = keys;
    this.tagLength = tagLength;
    this.phase = at.phase;
    this.onStoreFailure = at.onStoreFailure;
    this.entries = entries;
    this.statNames = statNames;
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
  readonly secretKeys: ReadonlySet<string>;
  readonly rules: readonly Rule[];
  readonly steps: readonly DeriveStep[];
  readonly root: PolicyNode;
  private readonly names: BucketNames;

  constructor(options: {
    readonly domain: string;
    readonly file: string;
    readonly settings: DomainSettings;
    readonly steps: readonly DeriveStep[];
    readonly root: PolicyNode;
    readonly rules: readonly Rule[];
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
    this.secretKeys = secretKeysOf(options.steps);
    this.rules = options.rules;
    this.steps = options.steps;
    this.root = options.root;
    this.names = new BucketNames(options.domain, this.secretKeys);
  }

  get matchCost(): number {
    return this.root.memo.cost;
  }

  /** Runs every step of `derive`, in order. */
  derive(given: readonly Entry[]): readonly Entry[] {
    let entries = given;
    for (let i = 0; i < this.steps.length; i++) entries = (this.steps[i] as DeriveStep).apply(entries);
    return entries;
  }

  match(given: readonly Entry[]): Match {
    const entries = this.derive(given);
    if (entries.length === 0) return new PolicyMatch(NO_RULES, NO_NAMES, 0, this, entries, NO_NAMES);
    let node = this.root;
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i] as Entry;
      const next = node.find(entry.key, entry.value);
      if (next === undefined) return new PolicyMatch(NO_RULES, NO_NAMES, 0, this, entries, NO_NAMES);
      node = next;
    }
    if (node.rules.length === 0) return new PolicyMatch(NO_RULES, NO_NAMES, 0, node, entries, NO_NAMES);
    const { keys, tagLength, statNames } = this.names.nameOf(node, entries);
    return new PolicyMatch(node.rules, keys, tagLength, node, entries, statNames);
  }
}

/** Entry keys whose values are API keys: the sources of `sha256` tables. */
export function secretKeysOf(steps: readonly DeriveStep[]): ReadonlySet<string> {
  return new Set(steps.flatMap((step) => (step.kind === 'table' ? [step.source] : [])));
}
