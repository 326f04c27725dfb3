import { type BucketStore, StorageError, type TakeItem } from '../../../limiter/bucket-store.js';
import { systemClock, timerMs } from '../../../limiter/clock.js';
import type { StoreFault } from '../../../limiter/store-fault.js';
import { quantity } from '../../../quantity.js';
import { Signal } from '../../../runtime/signal.js';
import type { Partition, Shard } from '../../sharded/shard.js';
import { ConnectionAttempts } from '../connection/connection-attempts.js';
import type { ConnectionCounts } from '../connection/connection-options.js';
import { prepareTls } from '../connection/dial.js';
import { fixedLogin } from '../connection/login-source.js';
import { Outage, type RedisSettingNames } from '../connection/outage.js';
import { ReconnectGrace } from '../connection/reconnect-grace.js';
import { endpointName, type HostPort } from '../connection/redis-address.js';
import { redisFaultOf } from '../connection/redis-fault.js';
import { SharedLogin } from '../connection/shared-login.js';
import type { RedisBuckets, RedisNodeState } from '../redis-buckets.js';
import { DEFAULT_KEY_PREFIX, RedisKeys } from '../redis-key.js';
import { RedisStore } from '../redis-store.js';
import type { RedisStoreOptions } from '../redis-store-options.js';
import type { HighestTime } from '../redis-time.js';
import type { ScriptReply, ScriptRequest } from '../script-requests/script-request.js';
import { ClusterFinder } from './cluster-finder.js';
import { type ClusterNodeOptions, ClusterNodes } from './cluster-nodes.js';
import type { ClusterView } from './cluster-view.js';
import { BucketSlots } from './slot-keys.js';
import { UNKNOWN_PARTITION, UnknownNodes } from './unknown-nodes.js';

/** Maximum time that requests wait for the first view after the start, in milliseconds. */
const DISCOVERY_GRACE_MS = 1000;
/** Maximum number of log lines about nodes per minute, because a server may name any number of nodes. */
const MAX_NODE_LINES = 100;
const NODE_LINES_MS = 60_000;

/** Faults of a node after which another node may serve its slots. */
const MAY_HAVE_MOVED: ReadonlySet<StoreFault> = new Set([
  ...(['cluster', 'cluster_down', 'moved', 'readonly', 'masterdown'] as const),
  ...(['refused', 'unknown_host', 'no_answer', 'lost'] as const),
]);

/** Settings of {@link ClusterStore}. */
export interface ClusterStoreOptions extends RedisStoreOptions {
  /** Repeats a take that could not be sent in one call, or that waited for the nodes. */
  readonly takeAgain: BucketStore['take'];
}

/** State of a cluster: whether the slots are known, and which slots no node serves. */
type ClusterState =
  | { readonly at: 'unknown' }
  | { readonly at: 'known'; readonly unassignedSlots: string }
  | { readonly at: 'closed' };

/**
 * The buckets in a Redis Cluster: a {@link RedisStore} for each master, each with its own circuit breaker. A dead
 * master therefore affects only the tenants in its slots. All buckets of a tenant share a slot and are decided in one
 * step.
 */
export class ClusterStore implements RedisBuckets {
  readonly #options: ClusterStoreOptions;
  readonly #names: RedisSettingNames;
  readonly #monotonicMicros: () => number;
  readonly #keys: RedisKeys;
  readonly #highestTime: HighestTime = { micros: 0 };
  readonly #login: SharedLogin;
  readonly #attempts = new ConnectionAttempts();
  readonly #outage: Outage;
  readonly #nodes: ClusterNodes;
  readonly #finder: ClusterFinder;
  readonly #unknown: UnknownNodes;
  readonly #upSignal = new Signal();
  readonly #downSignal = new Signal<string>();
  readonly onUp = this.#upSignal.add;
  readonly onDown = this.#downSignal.add;
  /** Number of log lines about nodes in the current minute, and the start of that minute. */
  #nodeLines = 0;
  #nodeLinesSinceMs = Number.NEGATIVE_INFINITY;
  /** Whether weir has already logged that the addresses belong to two clusters. */
  #hasLoggedInconsistency = false;
  #state: ClusterState = { at: 'unknown' };
  /** Active while requests wait for the first view. */
  readonly #reconnectGrace = new ReconnectGrace(() => this.#reconnectGrace.end());

  /** Connects in the background. Throws an Error if the TLS settings are invalid. */
  constructor(options: ClusterStoreOptions) {
    this.#options = options;
    const { address, tls, login, timeoutMicros, maxInFlight, takeAgain } = options;
    const { prefix = 'REDIS', login: place } = options.names ?? {};
    this.#names = { prefix, login: place, cluster: true };
    this.#monotonicMicros = options.monotonicMicros ?? (() => systemClock.monotonicMicros());
    this.#keys = new RedisKeys(options.keyPrefix ?? DEFAULT_KEY_PREFIX);
    const source = login ?? fixedLogin(address);
    this.#login = new SharedLogin(source);
    this.#outage = new Outage(address, this.#names);
    this.#nodes = new ClusterNodes({
      slots: new BucketSlots(this.#keys),
      monotonicMicros: this.#monotonicMicros,
      open: (endpoint, node) => this.#open(endpoint, node),
      takeAgain,
      onStaleSlots: () => this.#finder.refresh(),
    });
    this.#unknown = new UnknownNodes({
      name: address.redactedAddress,
      isKnown: () => this.#state.at === 'known',
      reconnectGrace: this.#reconnectGrace,
      takeAgain,
      maxInFlight,
      timeoutMicros,
      monotonicMicros: this.#monotonicMicros,
    });
    this.#finder = new ClusterFinder(
      {
        seeds: address.cluster ?? [],
        tls: prepareTls(address.tls, tls),
        login: () => source.login(),
        variable: `${prefix}_URL`,
      },
      {
        found: (view) => this.#onFound(view),
        failed: (reason) => this.#onFailed(reason),
        inconsistent: (sentence) => this.#onInconsistency(sentence),
      },
    );
    this.#reconnectGrace.start(Math.max(DISCOVERY_GRACE_MS, timerMs(timeoutMicros)));
    this.#finder.refresh();
  }

  get connected(): boolean {
    return this.#nodes.isAnyUp;
  }

  get isComplete(): boolean {
    return this.#state.at === 'known' && this.#nodes.areAllUp;
  }

  get connections(): ConnectionCounts {
    return this.#nodes.connections;
  }

  get nodes(): readonly RedisNodeState[] {
    if (this.#state.at !== 'unknown') return this.#nodes.states;
    const named = new Set(this.#options.address.cluster?.map(endpointName));
    return [...named].map((name) => ({
      name,
      up: false,
      reason: 'disconnected',
      latencyMicros: undefined,
    }));
  }

  partitionOf(item: TakeItem): Partition {
    return this.#state.at === 'unknown' ? UNKNOWN_PARTITION : this.#nodes.partitionOf(item);
  }

  shardOf(partition: Partition): Shard | StorageError {
    return partition === UNKNOWN_PARTITION ? this.#unknown : this.#nodes.shardOf(partition);
  }

  async runScript(request: ScriptRequest): Promise<ScriptReply> {
    if (this.#state.at !== 'unknown') return this.#nodes.runScript(request);
    return new StorageError('disconnected', `Redis ${this.#options.address.redactedAddress} is unavailable`);
  }

  async close(): Promise<void> {
    this.#state = { at: 'closed' };
    this.#reconnectGrace.end();
    this.#finder.close();
    await this.#nodes.close();
    this.#login.close();
  }

  #open({ host, port }: HostPort, { redirect, probeTag }: ClusterNodeOptions): RedisStore {
    const { address, observeFault, finder: _, ...options } = this.#options;
    const { tls, username, password } = address;
    const store = new RedisStore({
      ...options,
      address: {
        ...{ host, port, tls, db: 0, username, password },
        redactedAddress: `${tls ? 'rediss' : 'redis'}://${endpointName({ host, port })}`,
      },
      login: this.#login.ofNode(),
      log: (level, sentence) => this.#logOfNode(level, sentence),
      names: this.#names,
      attempts: this.#attempts,
      keys: this.#keys,
      highestTime: this.#highestTime,
      redirect,
      probeTag,
      observeFault: (fault) => {
        observeFault?.(fault);
        if (MAY_HAVE_MOVED.has(fault)) this.#finder.refresh();
      },
    });
    store.onUp(this.#upSignal.emit);
    store.onDown(this.#downSignal.emit);
    return store;
  }

  async #onFound(view: ClusterView): Promise<void> {
    await this.#nodes.apply(view);
    const before = this.#state;
    if (before.at === 'closed') return;
    const { unassignedSlots } = this.#nodes;
    this.#state = { at: 'known', unassignedSlots };
    this.#reconnectGrace.end();
    this.#outage.hasWorked = true;
    this.#outage.end();
    const { address } = this.#options;
    if (before.at === 'unknown') {
      this.#log(
        'info',
        `Redis ${address.redactedAddress} has ${quantity(this.#nodes.states.length, 'master')}`,
      );
    }
    if (unassignedSlots === (before.at === 'known' ? before.unassignedSlots : '')) return;
    if (unassignedSlots === '') this.#log('info', `Redis ${address.redactedAddress} serves all slots`);
    else {
      this.#log(
        'error',
        `no node of Redis ${address.redactedAddress} serves slots ${unassignedSlots}: on_store_failure ` +
          'decides requests whose buckets are in these slots; restart the master, or assign the slots to ' +
          'another master (CLUSTER ADDSLOTS)',
      );
    }
  }

  #onFailed(reason: string): void {
    this.#reconnectGrace.end();
    this.#options.observeFault?.(redisFaultOf(reason).reason);
    this.#logFailed(reason);
  }

  #logFailed(reason: string): void {
    // Each known node logs its own failures.
    if (this.#nodes.isAnyUp) return;
    const { redactedAddress } = this.#options.address;
    this.#outage.logOnce(reason, redactedAddress, (level, sentence) => this.#log(level, sentence));
  }

  /** Logged once, because the addresses do not change while weir runs. */
  #onInconsistency(sentence: string): void {
    if (!this.#hasLoggedInconsistency) this.#log('warn', sentence);
    this.#hasLoggedInconsistency = true;
  }

  #logOfNode(level: 'info' | 'warn' | 'error', sentence: string): void {
    const now = performance.now();
    if (now - this.#nodeLinesSinceMs >= NODE_LINES_MS) {
      this.#nodeLinesSinceMs = now;
      this.#nodeLines = 0;
    }
    this.#nodeLines++;
    if (this.#nodeLines <= MAX_NODE_LINES) this.#log(level, sentence);
    else if (this.#nodeLines === MAX_NODE_LINES + 1) {
      const { redactedAddress } = this.#options.address;
      this.#log(
        'warn',
        `further messages about nodes of Redis ${redactedAddress} are suppressed for up to a minute`,
      );
    }
  }

  #log(level: 'info' | 'warn' | 'error', sentence: string): void {
    if (this.#state.at !== 'closed') this.#options.log?.(level, sentence);
  }
}
