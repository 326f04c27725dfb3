import type { PlanTable } from '../../policy/plans/plan-table.js';
import type { DomainStatus } from '../../policy/policy.js';
import type { PolicySet } from '../../policy/policy-set.js';
import {
  type InEffect,
  inEffectOf,
  type LoadedPolicies,
  type LoadOptions,
  type LoadReport,
  type PreviousPolicies,
  type ReadPolicies,
} from '../files/load-policies.js';
import type { PolicyPlace } from '../files/policy-paths.js';
import type { ConfigProblem } from '../yaml/config-problem.js';
import { type PolicyItem, PolicyReceiver, specItems } from './policy-transfer.js';

/** Request of one thread to another to load policies, as plain data. */
export interface LoadRequest extends InEffect {
  readonly places: readonly PolicyPlace[];
  readonly options: LoadOptions;
}

/** One part of a load's result. */
export type LoadItem =
  | PolicyItem
  | ({ readonly kind: 'version'; readonly version: string } & Pick<
      LoadReport,
      'contents' | 'fingerprint' | 'addresses' | 'refusesStart'
    >)
  | { readonly kind: 'status'; readonly status: DomainStatus }
  | { readonly kind: 'error' | 'warning'; readonly problem: ConfigProblem }
  | { readonly kind: 'file'; readonly file: string }
  | { readonly kind: 'domain_of'; readonly file: string; readonly domain: string }
  | { readonly kind: 'digest'; readonly domain: string; readonly digest: string };

/** Returns the request for a load after `previous`. */
export function loadRequest(
  places: readonly PolicyPlace[],
  options: LoadOptions,
  previous: PreviousPolicies | undefined,
): LoadRequest {
  return { places, options, ...inEffectOf(previous) };
}

/**
 * Yields the result of a read in parts. A domain that stays in effect is sent by name only, because the receiver has
 * its policy. Tables of plans are appended to `tables`, and the items contain their index.
 */
export function* loadItems(read: ReadPolicies, tables: PlanTable[]): Generator<LoadItem> {
  const { specs, version, secretKeys, contents, fingerprint, addresses, refusesStart, memory } = read;
  yield { kind: 'version', version, contents, fingerprint, addresses, refusesStart };
  for (const problem of read.errors) yield { kind: 'error', problem };
  for (const problem of read.warnings) yield { kind: 'warning', problem };
  for (const file of read.files) yield { kind: 'file', file };
  for (const status of read.domains) yield { kind: 'status', status };
  for (const [file, domain] of memory.domainOf) yield { kind: 'domain_of', file, domain };
  for (const [domain, digest] of memory.digests) yield { kind: 'digest', domain, digest };
  for (const [domain, spec] of specs) {
    if (spec === 'kept') yield { kind: 'kept', domain };
    else yield* specItems(spec, secretKeys, tables);
  }
}

/** Builds the policies from the items of {@link loadItems}. */
export class LoadReceiver {
  private readonly policies: PolicyReceiver;
  private readonly errors: ConfigProblem[] = [];
  private readonly warnings: ConfigProblem[] = [];
  private readonly files: string[] = [];
  private readonly domains: DomainStatus[] = [];
  private readonly domainOf = new Map<string, string>();
  private readonly digests = new Map<string, string>();
  private version = '';
  private contents = '';
  private fingerprint = '';
  private addresses: readonly string[] = [];
  private refusesStart = false;

  /** `inEffect` is the set that the request named. `tables` are those of {@link loadItems}. */
  constructor(inEffect: PolicySet | undefined, tables: readonly PlanTable[]) {
    this.policies = new PolicyReceiver(inEffect, tables);
  }

  /** Adds the next item. Throws an Error for an item that does not belong here. */
  add(item: LoadItem): void {
    switch (item.kind) {
      case 'version':
        this.version = item.version;
        this.contents = item.contents;
        this.fingerprint = item.fingerprint;
        this.addresses = item.addresses;
        this.refusesStart = item.refusesStart;
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
      fingerprint: this.fingerprint,
      addresses: this.addresses,
      refusesStart: this.refusesStart,
      domains: this.domains,
      memory: { domainOf: this.domainOf, digests: this.digests },
    };
  }
}
