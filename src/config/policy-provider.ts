import type { PolicySet } from '../policy/compiled-policy.js';
import type { DomainStatus } from '../policy/policy.js';
import type { PlanBytes } from './read/read-domain.js';
import type { SourceHistory } from './read/resolve-domains.js';
import type { PlanSources } from './sources/plan-sources.js';
import type { PolicyItem } from './threads/policy-transfer.js';
import type { DiscoveryResponse } from './xds/discovery.js';
import type { ConfigProblem } from './yaml/config-problem.js';

/**
 * Maximum number of problems of a load that are kept for display and logged individually; weir check-config prints up
 * to 1,000.
 */
export const MAX_SHOWN = 20;

/** Reason for a reload: a change of files or rows, or a request (`start`, `signal`). */
export type ReloadReason = 'change' | 'start' | 'signal';

/** The source of the policies for decisions: files, or management servers. */
export interface PolicyProvider {
  /**
   * Returns the policies in effect; undefined if none were ever loaded (FORCE_START_WITHOUT_INITIAL_CONFIG). Call it
   * once per request.
   */
  current(): PolicySet | undefined;
  /**
   * Adds a listener that is called after each load. `success` is false if the load failed and the previous policies
   * stay in effect.
   */
  onReload(listener: (success: boolean) => void): void;
}

/** An accepted update of the management server with this index in the list of servers. */
export interface XdsUpdate {
  readonly server: number;
  readonly response: DiscoveryResponse;
}

/** The policies in effect, as plain data, and the state of the latest load. */
export interface KeptPolicies {
  readonly version: string;
  readonly batches: readonly (readonly PolicyItem[])[];
  readonly memory: SourceHistory;
}

/** What another process of this server needs, besides the policy files, to load the same policies. Plain data. */
export interface PolicyHandover {
  /** The policies in effect, if files are invalid: their domains keep this version. */
  readonly kept: KeptPolicies | undefined;
  /** The rows of tables in Redis, by address. */
  readonly rows: ReadonlyMap<string, PlanBytes>;
  /** The last accepted update of each management server. */
  readonly updates: readonly XdsUpdate[];
}

/** A provider that loads policies in this process and follows changes until it is closed. */
export interface LoadingPolicyProvider extends PolicyProvider {
  /**
   * Called when new policies are loaded. They take effect once the result resolves. `update` is the update that they
   * come from. Default: resolves at once.
   */
  beforeSwitch: (update?: XdsUpdate) => Promise<void>;
  handover(): PolicyHandover;
  /** Returns the problems of the latest load, at most {@link MAX_SHOWN}; empty if it succeeded. */
  errors(): readonly ConfigProblem[];
  /** Sorted by name. */
  domains(): readonly DomainStatus[];
  /** The tables of `plans` in Redis that the provider polls; undefined if it has none. */
  readonly sources?: Pick<PlanSources, 'ages' | 'failures' | 'loadedRows'> | undefined;
  /** Requests a new load of the policies. */
  reload(reason: ReloadReason): void;
  close(): void;
}
