import { createHash } from 'node:crypto';
import type { CompiledPolicy, PolicySet } from '../../policy/compiled-policy.js';
import type { DomainStatus } from '../../policy/policy.js';
import { Signal } from '../../runtime/signal.js';
import { runToCompletion } from '../../runtime/turns.js';
import {
  type LoadingPolicyProvider,
  MAX_SHOWN,
  type PolicyHandover,
  type XdsUpdate,
} from '../policy-provider.js';
import { type NewSecret, newSecrets, secretKeysOfSet } from '../read/secret-keys.js';
import { withSecretKeys } from '../threads/policy-transfer.js';
import { type ConfigProblem, WHOLE_FILE } from '../yaml/config-problem.js';
import type { DiscoveryResponse } from './discovery.js';
import { type XdsEvents, type XdsOptions, type XdsPolicies, XdsSource } from './xds-source.js';

/** Options of a management server, and the log of its events. */
export interface XdsServerOptions {
  readonly options: XdsOptions;
  readonly events: XdsEvents;
}

/**
 * Provides the policies of one or several management servers: the last valid update of each. If several have the same
 * domain, the first one in the list decides it, so that all replicas agree whatever server answers first. Call
 * {@link connect} to start, or {@link receive} in a process that has no connections.
 */
export class XdsPolicyProvider implements LoadingPolicyProvider, XdsPolicies {
  readonly #sources: readonly XdsSource[];
  readonly #loaded = new Signal<boolean>();
  readonly onReload = this.#loaded.add;
  beforeSwitch: LoadingPolicyProvider['beforeSwitch'] = async () => {};
  #current: PolicySet | undefined;
  /** The policies of sources, with the secret keys of all sources. */
  readonly #shared = new WeakMap<CompiledPolicy, CompiledPolicy>();
  /** Domains that an earlier source decides, as problems of the sources that repeat them. */
  #repeated: readonly ConfigProblem[] = [];

  constructor(servers: readonly XdsServerOptions[]) {
    this.#sources = servers.map(({ options, events }) => new XdsSource(options, events, this));
  }

  connect(): void {
    for (const source of this.#sources) source.connect();
  }

  current(): PolicySet | undefined {
    return this.#current;
  }

  /** Returns the management servers that have sent no valid policies yet. */
  missing(): readonly string[] {
    return this.#sources.filter(({ policySet }) => policySet === undefined).map(({ server }) => server);
  }

  errors(): readonly ConfigProblem[] {
    return [...this.#sources.flatMap(({ errors }) => errors), ...this.#repeated].slice(0, MAX_SHOWN);
  }

  domains(): readonly DomainStatus[] {
    const byName = new Map<string, DomainStatus>();
    for (const { domains } of this.#sources) {
      for (const status of domains) {
        const known = byName.get(status.domain);
        if (known === undefined || known.state === 'absent') byName.set(status.domain, status);
      }
    }
    return [...byName.values()].sort((a, b) => (a.domain < b.domain ? -1 : 1));
  }

  reload(): void {
    for (const source of this.#sources) source.reload();
  }

  close(): void {
    for (const source of this.#sources) source.close();
  }

  handover(): PolicyHandover {
    const updates = this.#sources.flatMap(({ response }, server) =>
      response === undefined ? [] : [{ server, response }],
    );
    return { kept: undefined, rows: new Map(), updates };
  }

  /** Loads updates that another process has accepted. Rejects if a load could not run. */
  async receive(updates: readonly XdsUpdate[]): Promise<void> {
    for (const { server, response } of updates) {
      await this.#sources[server]?.update(response);
    }
  }

  ready(source: XdsSource, response: DiscoveryResponse): Promise<void> {
    return this.beforeSwitch({ server: this.#sources.indexOf(source), response });
  }

  apply(): readonly NewSecret[] {
    const before = this.#current;
    const set = this.#combine();
    if (before?.version === set.version) return [];
    this.#current = set;
    return before === undefined ? [] : newSecrets(before, set);
  }

  loaded(success: boolean): void {
    this.#loaded.emit(success);
  }

  /** Returns the policies of all sources, and reports domains that several of them have. */
  #combine(): PolicySet {
    const loaded = this.#sources.filter(({ policySet }) => policySet !== undefined);
    const [only] = loaded;
    if (only?.policySet !== undefined && loaded.length === 1) return only.policySet;
    const domains = new Map<string, CompiledPolicy>();
    const owners = new Map<string, XdsSource>();
    const repeated: ConfigProblem[] = [];
    const known = new Set(this.#repeated.map(({ message }) => message));
    for (const source of loaded) {
      for (const [domain, policy] of source.policySet?.domains ?? []) {
        const owner = owners.get(domain);
        if (owner !== undefined) {
          const problem = repetition(policy, source, owner);
          repeated.push(problem);
          if (!known.has(problem.message)) source.events.repeated(problem);
        } else {
          owners.set(domain, source);
          domains.set(domain, policy);
        }
      }
    }
    this.#repeated = repeated;
    const secretKeys = secretKeysOfSet({ domains });
    for (const [domain, policy] of domains) {
      const shared = withSecretKeys(this.#shared.get(policy) ?? policy, secretKeys, true);
      this.#shared.set(policy, runToCompletion(shared));
      domains.set(domain, this.#shared.get(policy) as CompiledPolicy);
    }
    const versions = loaded.map(({ policySet }) => policySet?.version).join(' ');
    return { domains, version: createHash('sha256').update(versions).digest('hex').slice(0, 12) };
  }
}

function repetition({ domain, file }: CompiledPolicy, source: XdsSource, owner: XdsSource): ConfigProblem {
  const message =
    `the domain "${domain.slice(0, 200)}" of ${source.server} has no effect, because ${owner.server} has it, too; ` +
    'remove it from one of the two management servers';
  return { file, ...WHOLE_FILE, path: '', message };
}
