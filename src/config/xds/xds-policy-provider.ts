import { createHash } from 'node:crypto';
import {
  type CompiledPolicy,
  type NewSecret,
  newSecrets,
  type PolicySet,
  secretKeysOfSet,
} from '../../policy/compiled-policy.js';
import type { DomainStatus } from '../../policy/policy.js';
import { shownAddress, withoutAddressSecrets } from '../../runtime/shown-address.js';
import { Signal } from '../../runtime/signal.js';
import { runToCompletion } from '../../runtime/turns.js';
import { inEffectOf, type LoadedPolicies, type LoadOptions } from '../files/load-policies.js';
import {
  type LoadingPolicyProvider,
  MAX_SHOWN,
  type PolicyHandover,
  type XdsUpdate,
} from '../policy-provider.js';
import { LoadThread } from '../threads/load-thread.js';
import { withSecretKeys } from '../threads/policy-transfer.js';
import { type ConfigProblem, countProblems, formatProblem, WHOLE_FILE } from '../yaml/config-problem.js';
import { AdsClient, type AdsClientOptions } from './ads-client.js';
import { createDiscoveryCodec, type DiscoveryResponse } from './discovery.js';
import type { UpdateRequest } from './load-update.js';

/** Events of a management server, for a log. */
export interface XdsEvents {
  connected(): void;
  /**
   * Called when a connection fails, or is lost if `wasConnected`. The next attempt starts in `pauseMs` milliseconds.
   */
  lost(reason: string, pauseMs: number, wasConnected: boolean): void;
  /** Called when an update takes effect. `inEffect` are the policies of all management servers. */
  accepted(version: string, loaded: LoadedPolicies, inEffect: PolicySet, secrets: readonly NewSecret[]): void;
  /** Called when an update is invalid and the previous policies stay in effect. `policy` is their version. */
  rejected(version: string, loaded: Pick<LoadedPolicies, 'errors' | 'warnings'>, policy: string): void;
  /** Called when a domain of this server has no effect, because an earlier management server has it, too. */
  repeated(problem: ConfigProblem): void;
  /** Called when an update could not be processed. */
  failed(error: unknown): void;
  /** Called when the server sends resources of a type that was not requested. */
  ignored(typeUrl: string): void;
  /**
   * Called when an operator requests a reload while the server is connected, which has no effect because updates are
   * pushed.
   */
  reloadAsked(): void;
}

/** How to follow a management server. */
interface XdsOptions {
  /** `host:port`. */
  readonly target: string;
  /** The connection; undefined in a process that only gets updates from another one. */
  readonly connection: Pick<AdsClientOptions, 'address' | 'node' | 'backOff'> | undefined;
  readonly load: LoadOptions;
}

const TIMERS: AdsClientOptions['timers'] = {
  set: (callback, delayMs) => setTimeout(callback, delayMs),
  clear: (timer) => clearTimeout(timer as NodeJS.Timeout),
};

/** Follows one management server: the last valid update as a whole, until `close`. Call {@link connect} to start. */
class XdsSource {
  readonly events: XdsEvents;
  /** Name of the management server in messages. */
  readonly server: string;
  /** The last valid update as it was received. */
  response: DiscoveryResponse | undefined;
  readonly #policies: XdsPolicyProvider;
  readonly #loader = new LoadThread<UpdateRequest>('loads an update');
  readonly #options: LoadOptions;
  readonly #client: AdsClient | undefined;
  #connected = false;
  /** The last valid update, whose policies are in effect. */
  #accepted: LoadedPolicies | undefined;
  #domains: readonly DomainStatus[] = [];
  #errors: readonly ConfigProblem[] = [];

  constructor({ target, load, connection }: XdsOptions, events: XdsEvents, policies: XdsPolicyProvider) {
    this.events = events;
    this.server = shownAddress(target);
    this.#policies = policies;
    this.#options = load;
    if (connection === undefined) return;
    this.#client = new AdsClient({
      ...connection,
      codec: createDiscoveryCodec(),
      timers: TIMERS,
      update: (update) => this.update(update),
      connected: () => this.#onConnected(),
      lost: (reason, pauseMs) => this.#onLost(reason, pauseMs),
      failed: (error) => this.#onFailed(error),
      ignored: (typeUrl) => events.ignored(typeUrl),
    });
  }

  connect(): void {
    this.#client?.connect();
  }

  /** The policies of the last valid update; undefined before. */
  get policySet(): PolicySet | undefined {
    return this.#accepted?.policySet;
  }

  /** Problems of the latest update, see LoadingPolicyProvider. */
  get errors(): readonly ConfigProblem[] {
    return this.#errors;
  }

  get domains(): readonly DomainStatus[] {
    return this.#domains;
  }

  /** Ends a pause before the next connection. There is nothing to read again, because the server pushes updates. */
  reload(): void {
    if (this.#connected) this.events.reloadAsked();
    this.connect();
  }

  close(): void {
    this.#client?.stop();
    this.#loader.close();
  }

  /** Loads an update, and puts it into effect if it is valid. Returns why it is rejected. */
  async update(response: DiscoveryResponse): Promise<string | undefined> {
    const { resources, versionInfo: version } = response;
    const before = inEffectOf(this.#accepted);
    const loaded = await this.#loader.load({ resources, options: this.#options, before }, this.#accepted);
    const { errors } = loaded;
    if (errors.length === 0) {
      await this.#policies.ready(this, response);
      this.response = response;
      this.#accept(version, loaded);
    } else this.#reject(version, loaded);
    this.#policies.loaded(errors.length === 0);
    return errors.length === 0 ? undefined : rejection(errors);
  }

  #accept(version: string, loaded: LoadedPolicies): void {
    const before = this.policySet;
    // Keep the same object for equal content, so that callers can compare sets by identity.
    const policySet = before?.version === loaded.policySet.version ? before : loaded.policySet;
    this.#accepted = { ...loaded, policySet };
    this.#domains = loaded.domains;
    this.#errors = [];
    const secrets = this.#policies.apply();
    this.events.accepted(version, this.#accepted, this.#policies.current() ?? policySet, secrets);
  }

  #reject(version: string, loaded: LoadedPolicies): void {
    const inEffect = this.policySet?.domains ?? new Map();
    const kept = this.#domains.flatMap((one) =>
      inEffect.has(one.domain) ? [{ ...one, state: 'kept' as const }] : [],
    );
    const absent = loaded.domains.flatMap((one) =>
      inEffect.has(one.domain) ? [] : [{ ...one, state: 'absent' as const }],
    );
    this.#domains = [...kept, ...absent].sort((a, b) => (a.domain < b.domain ? -1 : 1));
    this.#errors = loaded.errors.slice(0, MAX_SHOWN);
    this.events.rejected(version, loaded, this.#policies.current()?.version ?? 'none');
  }

  #onFailed(error: unknown): void {
    this.events.failed(error);
    this.#policies.loaded(false);
  }

  #onConnected(): void {
    this.#connected = true;
    this.events.connected();
  }

  #onLost(reason: string, pauseMs: number): void {
    const wasConnected = this.#connected;
    this.#connected = false;
    this.events.lost(withoutAddressSecrets(reason), pauseMs, wasConnected);
  }
}

/** Returns the text that tells operators, in the log of the management server, what to correct. */
function rejection(errors: readonly ConfigProblem[]): string {
  const lines = errors.slice(0, MAX_SHOWN).map(formatProblem);
  const more = countProblems(errors) - lines.length;
  return [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n');
}

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
export class XdsPolicyProvider implements LoadingPolicyProvider {
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

  /** Resolves when a valid update may take effect. */
  ready(source: XdsSource, response: DiscoveryResponse): Promise<void> {
    return this.beforeSwitch({ server: this.#sources.indexOf(source), response });
  }

  /** Puts the accepted policies of all sources into effect. Returns the keys that become secret. */
  apply(): readonly NewSecret[] {
    const before = this.#current;
    const set = this.#combine();
    if (before?.version === set.version) return [];
    this.#current = set;
    return before === undefined ? [] : newSecrets(before, set);
  }

  /** Reports a finished load; see PolicyProvider.onReload. */
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
