import type { DomainPolicy, DomainStatus, PolicySet } from '../../policy/policy.js';
import { PossibleDenial } from '../../policy/possible-denial.js';
import { ownSecretKeys } from '../read/secret-keys.js';
import type { ConfigProblem } from '../yaml/config-problem.js';
import type { LoadedPolicies, LoadOptions, PreviousPolicies } from './load-policies.js';
import { loadPolicies } from './load-policies.js';
import type { PolicyPlace } from './policy-paths.js';
import { PolicyBuilder, type PolicyItem, policyItems } from './policy-transfer.js';

/** What is in force where a load is asked for, as plain data. */
export interface InForce {
  /** The domains in force, each with what it takes for secrets itself; their policies stay where they are. */
  readonly inForce: ReadonlyMap<string, ReadonlySet<string>>;
  readonly memory: PreviousPolicies['memory'] | undefined;
}

/** What one thread asks another to load, as plain data. */
export interface LoadRequest extends InForce {
  readonly places: readonly PolicyPlace[];
  readonly options: LoadOptions;
}

export function inForceOf(previous: PreviousPolicies | undefined): InForce {
  const domains = previous?.policySet.domains ?? new Map<string, DomainPolicy>();
  const inForce = new Map(Array.from(domains, ([domain, policy]) => [domain, ownSecretKeys(policy)]));
  return { inForce, memory: previous?.memory };
}

/** One part of what a load gave. */
export type LoadItem =
  | PolicyItem
  | { readonly kind: 'version'; readonly version: string; readonly contents: string }
  | { readonly kind: 'status'; readonly status: DomainStatus }
  | { readonly kind: 'error' | 'warning'; readonly problem: ConfigProblem }
  | { readonly kind: 'file'; readonly file: string }
  | { readonly kind: 'domain_of'; readonly file: string; readonly domain: string }
  | { readonly kind: 'digest'; readonly domain: string; readonly digest: string };

/** The request that asks for a load after `previous`. */
export function loadRequest(
  places: readonly PolicyPlace[],
  options: LoadOptions,
  previous: PreviousPolicies | undefined,
): LoadRequest {
  return { places, options, ...inForceOf(previous) };
}

/** Loads what `request` asks for, and gives it in parts; see {@link itemsOfLoad}. */
export function loadItems(request: LoadRequest): Generator<LoadItem> {
  return itemsOfLoad(request, (previous) => loadPolicies(request.places, request.options, previous));
}

/**
 * Gives in parts what `load` gives. Of a domain in force that is bad, or whose files hold what it was made from, only the name is among
 * them: whoever asked keeps its policy.
 */
export function* itemsOfLoad(
  { inForce, memory }: InForce,
  load: (previous: PreviousPolicies | undefined) => LoadedPolicies,
): Generator<LoadItem> {
  const standIns = new Map(
    Array.from(inForce, ([domain, secretKeys]) => [domain, standIn(domain, secretKeys)]),
  );
  const loaded = load(
    memory === undefined ? undefined : { policySet: { domains: standIns, version: '' }, memory },
  );
  yield { kind: 'version', version: loaded.policySet.version, contents: loaded.contents };
  for (const problem of loaded.errors) yield { kind: 'error', problem };
  for (const problem of loaded.warnings) yield { kind: 'warning', problem };
  for (const file of loaded.files) yield { kind: 'file', file };
  for (const status of loaded.domains) yield { kind: 'status', status };
  for (const [file, domain] of loaded.memory.domainOf) yield { kind: 'domain_of', file, domain };
  for (const [domain, digest] of loaded.memory.digests) yield { kind: 'digest', domain, digest };
  const isSame = ({ domain }: DomainPolicy): boolean =>
    standIns.has(domain) && loaded.memory.digests.get(domain) === memory?.digests.get(domain);
  yield* policyItems(loaded.policySet, isSame);
}

/** Stands for a policy that another thread has. */
function standIn(domain: string, secretKeys: ReadonlySet<string>): DomainPolicy {
  return {
    domain,
    file: '',
    phase: { gracePeriodAtMicros: 0, activeAtMicros: 0 },
    onStoreFailure: 'error',
    responseHeaders: undefined,
    deniedResponse: undefined,
    decisionMetadata: undefined,
    overrideAlgorithm: 'fixed_window',
    secretKeys,
    rules: [],
    denial: new PossibleDenial(() => []),
    match() {
      throw new Error(`the policy of ${domain} is in another thread`);
    },
  };
}

/** Puts together what {@link loadItems} gives, item by item. */
export class LoadBuilder {
  private readonly policies: PolicyBuilder;
  private readonly errors: ConfigProblem[] = [];
  private readonly warnings: ConfigProblem[] = [];
  private readonly files: string[] = [];
  private readonly domains: DomainStatus[] = [];
  private readonly domainOf = new Map<string, string>();
  private readonly digests = new Map<string, string>();
  private version = '';
  private contents = '';

  /** `inForce` is what the request named. */
  constructor(inForce: PolicySet | undefined) {
    this.policies = new PolicyBuilder(inForce);
  }

  /** Takes the next item. Throws an Error for what does not belong here. */
  add(item: LoadItem): void {
    switch (item.kind) {
      case 'version':
        this.version = item.version;
        this.contents = item.contents;
        break;
      case 'status':
        this.domains.push(item.status);
        break;
      case 'error':
        this.errors.push(item.problem);
        break;
      case 'warning':
        this.warnings.push(item.problem);
        break;
      case 'file':
        this.files.push(item.file);
        break;
      case 'domain_of':
        this.domainOf.set(item.file, item.domain);
        break;
      case 'digest':
        this.digests.set(item.domain, item.digest);
        break;
      default:
        this.policies.add(item);
    }
  }

  finish(): LoadedPolicies {
    return {
      policySet: this.policies.finish(this.version),
      errors: this.errors,
      warnings: this.warnings,
      files: this.files,
      contents: this.contents,
      domains: this.domains,
      memory: { domainOf: this.domainOf, digests: this.digests },
    };
  }
}
