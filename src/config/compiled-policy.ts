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
import type { Level } from './level.js';
import { EXCEEDED, type MatchWork, unboundedWork } from './match-work.js';
import type { Algorithm, DomainPolicy, DomainSettings, Exceeded, Match } from './policy.js';
import type { PolicyNode } from './policy-node.js';
import { PossibleDenial } from './possible-denial.js';

const NO_RULES: readonly Rule[] = [];
const NO_NAMES: readonly string[] = [];

/** Values of so many UTF-16 units at most enter the name of a bucket for next to nothing. */
const SHORT_VALUE = 2048;
/** Steps that a unit of a longer value takes: its digest (bench: match). */
const NAMING_STEPS = 0.5;

/** A step of `derive`, as far as it is of interest here. */
interface Deriving {
  readonly entry: string;
  apply(entries: readonly Entry[], work: MatchWork): readonly Entry[] | typeof EXCEEDED;
}

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
  readonly secretKeys: ReadonlySet<string>;
  readonly rules: readonly Rule[];
  readonly steps: readonly DeriveStep[];
  readonly root: PolicyNode;
  private readonly names: BucketNames;
  private ofAllRules: PossibleDenial | undefined;

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

  get denial(): PossibleDenial {
    this.ofAllRules ??= new PossibleDenial(this.rules);
    return this.ofAllRules;
  }

  match(given: readonly Entry[], work = unboundedWork()): Match {
    let entries = given;
    for (let i = 0; i < this.steps.length; i++) {
      const step: Deriving = this.steps[i] as DeriveStep;
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
    for (let i = 0; i < entering.length; i++) {
      const { key, value } = entries[entering[i] as number] as Entry;
      if (value.length <= SHORT_VALUE || work.spend(value.length * NAMING_STEPS)) continue;
      return this.exceeded(entries, node, key, new PossibleDenial(node.rules));
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
