import type { PolicySet } from '../../policy/compiled-policy.js';
import type { DomainStatus } from '../../policy/policy.js';
import { shownAddress, withoutAddressSecrets } from '../../runtime/shown-address.js';
import { inEffectOf, type LoadedPolicies, type LoadOptions } from '../files/load-policies.js';
import { MAX_SHOWN } from '../policy-provider.js';
import type { NewSecret } from '../read/secret-keys.js';
import { LoadThread } from '../threads/load-thread.js';
import { type ConfigProblem, countProblems, formatProblem } from '../yaml/config-problem.js';
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
export interface XdsOptions {
  /** `host:port`. */
  readonly target: string;
  /** The connection; undefined in a process that only gets updates from another one. */
  readonly connection: Pick<AdsClientOptions, 'address' | 'node' | 'backOff'> | undefined;
  readonly load: LoadOptions;
}

/** The policies of all management servers. */
export interface XdsPolicies {
  current(): PolicySet | undefined;
  /** Resolves when a valid update may take effect. */
  ready(source: XdsSource, response: DiscoveryResponse): Promise<void>;
  /** Puts the accepted policies of all sources into effect. Returns the keys that become secret. */
  apply(): readonly NewSecret[];
  /** Reports a finished load; see PolicyProvider.onReload. */
  loaded(success: boolean): void;
}

const TIMERS: AdsClientOptions['timers'] = {
  set: (callback, delayMs) => setTimeout(callback, delayMs),
  clear: (timer) => clearTimeout(timer as NodeJS.Timeout),
};

/** Follows one management server: the last valid update as a whole, until `close`. Call {@link connect} to start. */
export class XdsSource {
  readonly events: XdsEvents;
  /** Name of the management server in messages. */
  readonly server: string;
  /** The last valid update as it was received. */
  response: DiscoveryResponse | undefined;
  readonly #policies: XdsPolicies;
  readonly #loader = new LoadThread<UpdateRequest>('src/config/xds/update-thread.js');
  readonly #options: LoadOptions;
  readonly #client: AdsClient | undefined;
  #connected = false;
  /** The last valid update, whose policies are in effect. */
  #accepted: LoadedPolicies | undefined;
  #domains: readonly DomainStatus[] = [];
  #errors: readonly ConfigProblem[] = [];

  constructor({ target, load, connection }: XdsOptions, events: XdsEvents, policies: XdsPolicies) {
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
