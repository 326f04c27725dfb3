import { type BucketStore, StorageError, type Take, type TakeResult } from '../../../limiter/bucket-store.js';
import { systemClock, timerMs } from '../../../limiter/clock.js';
import type { StoreFault } from '../../../limiter/failure-policy.js';
import { ignore, Signal } from '../../../runtime/signal.js';
import { plural } from '../../../runtime/texts.js';
import { withTimeout } from '../../../runtime/turns.js';
import type { Partition, PartitionTake, RollbackResult, Shard } from '../../sharded/shard.js';
import type { ConnectionCounts } from '../connection/connection-options.js';
import { endpointName, type HostPort } from '../connection/redis-address.js';
import type { RedisReplyError } from '../connection/redis-error.js';
import { nodeFaultOf, nodeFaultText } from '../node/faults.js';
import type { RedisBackend, RedisNodeState, ScriptReply, ScriptRequest } from '../redis-backend.js';
import { DEFAULT_KEY_PREFIX, RedisKeys, SLOTS, slotOfKey, tagOfSlots } from '../redis-key.js';
import { RedisStore } from '../redis-store.js';
import type { Redirect, RedisStoreOptions } from '../redis-store-options.js';
import type { ScriptBatch } from '../script-batch.js';
import type { HighestTime } from '../take-script-sender.js';
import { optionsOf } from '../with-redis.js';
import {
  ClusterPoll,
  type ClusterView,
  connectAndQuery,
  queryNode,
  redirectedEndpoint,
} from './cluster-view.js';

/** Time for which a node without slots is kept, in milliseconds, because migrated slots may return. */
const FORGET_MS = 10_000;
/**
 * Time for which a slot counts as migrating after the latest sign of a migration, in microseconds. Nodes report a
 * migration only when they receive keys of the slot.
 */
const MOVING_MICROS = 1_000_000;

/** Settings of {@link ClusterStore}. */
export interface ClusterStoreOptions extends RedisStoreOptions {
  /** Repeats a take that could not be sent in one call. */
  readonly takeAgain: BucketStore['take'];
}

/** A node that stores buckets, or may store some soon. */
interface ClusterNode {
  readonly endpoint: HostPort;
  readonly name: string;
  readonly store: RedisStore;
  /** Since when it has had no slots, in milliseconds; undefined while it serves slots. */
  slotlessSinceMs: number | undefined;
}

/**
 * The buckets in a Redis Cluster: a {@link RedisStore} for each master, each with its own circuit breaker. A dead
 * master therefore affects only the tenants in its slots. All buckets of a tenant share a slot and are decided in one
 * step. Until the masters are known, it is itself the shard of all slots, in which requests wait.
 */
export class ClusterStore implements RedisBackend, Shard {
  /** Takes that waited for the masters have no connection of their own, so their hits are never given back. */
  readonly connectionId = undefined;
  readonly #options: ClusterStoreOptions;
  readonly #monotonicMicros: () => number;
  readonly #keys: RedisKeys;
  readonly #highestTime: HighestTime = { micros: 0 };
  readonly #poll: ClusterPoll;
  readonly #closing = new AbortController();
  readonly #nodes = new Map<string, ClusterNode>();
  readonly #owners = new Array<ClusterNode | undefined>(SLOTS).fill(undefined);
  /** Migrating slots, each with the time until which it counts as migrating. */
  readonly #moving = new Map<number, number>();
  /** Number of connections of removed nodes. */
  #closedConnections = 0;
  readonly #upSignal = new Signal();
  readonly #downSignal = new Signal<string>();
  readonly onUp = this.#upSignal.add;
  readonly onDown = this.#downSignal.add;
  /** Whether the first query for the masters has not ended. Requests wait for it. */
  #isStarting = true;
  #endStart: () => void = ignore;
  readonly #started = new Promise<void>((resolve) => {
    this.#endStart = () => {
      this.#isStarting = false;
      resolve();
    };
  });
  #isKnown = false;
  /** Number of slots without a node in the latest view. */
  #unserved = 0;
  /** Faults of all nodes that the log shows since the latest view. */
  readonly #loggedFaults = new Set<StoreFault>();

  /** Connects in the background. Throws an Error if the TLS settings are invalid. */
  constructor(options: ClusterStoreOptions) {
    this.#options = options;
    this.#monotonicMicros = options.monotonicMicros ?? (() => systemClock.monotonicMicros());
    this.#keys = new RedisKeys(options.keyPrefix ?? DEFAULT_KEY_PREFIX);
    this.#poll = new ClusterPoll({
      seeds: options.address.cluster ?? [],
      query: (node) => this.#query(node),
      found: (view) => this.#apply(view),
      failed: (error) => this.#onFailed(error),
    });
    this.#poll.refresh();
  }

  get connected(): boolean {
    return this.#serving.some(({ store }) => store.connected);
  }

  get isComplete(): boolean {
    return this.#isKnown && this.#unserved === 0 && this.#serving.every(({ store }) => store.connected);
  }

  get connections(): ConnectionCounts {
    const counts = { active: 0, opened: this.#closedConnections, closed: this.#closedConnections };
    for (const { connections } of this.#stores) {
      counts.active += connections.active;
      counts.opened += connections.opened;
      counts.closed += connections.closed;
    }
    return counts;
  }

  /** The nodes that serve slots. Before they are known, the nodes in the settings. */
  get nodes(): readonly RedisNodeState[] {
    if (this.#isKnown) return this.#serving.map(({ name, store }) => ({ ...store.nodes[0], name }));
    const named = new Set(this.#options.address.cluster?.map(endpointName));
    return [...named].map((name) => ({ name, up: false, reason: 'disconnected', latencyMicros: undefined }));
  }

  /**
   * Returns the partition of a bucket: its slot. While the slot is migrating, the partition is the slot with the key,
   * because no node then has all buckets of a tenant.
   */
  partitionOf(take: Take): Partition {
    const slot = this.#keys.slotOf(take);
    return this.#moving.size > 0 && this.#isMoving(slot) ? `${slot} ${take.key}` : slot;
  }

  shardOf(partition: Partition): Shard | StorageError {
    return this.#isKnown ? this.#storeOf(partition) : this;
  }

  refusal(mayWait: boolean): StorageError | undefined {
    if (this.#isKnown || (this.#isStarting && mayWait)) return undefined;
    return unavailable(`Redis ${this.#options.address.redactedAddress} is unavailable`);
  }

  /** Waits for the first query at a start, and takes from the node that serves the partition. */
  async takePartition(take: PartitionTake): Promise<TakeResult> {
    const { partition, deadlineMicros, mayWait } = take;
    const refusal = this.refusal(mayWait);
    if (refusal !== undefined) return refusal;
    const leftMicros = Math.min(deadlineMicros - this.#monotonicMicros(), this.#options.timeoutMicros);
    await withTimeout(Math.max(0, Math.floor(timerMs(leftMicros)) - 1), this.#started, ignore);
    // Either the nodes are known now, or the time is over.
    const store = this.refusal(false) ?? this.#storeOf(partition);
    return store instanceof StorageError ? store : store.takePartition(take);
  }

  async rollBackPartition(): Promise<RollbackResult> {
    return 'skipped';
  }

  async runScript(request: ScriptRequest): Promise<ScriptReply> {
    const store = this.#storeOf(slotOfKey(request.key));
    const reply = store instanceof StorageError ? store : await store.runScript(request);
    // Another node may serve the slot now.
    if (reply instanceof StorageError) this.#poll.refresh();
    return reply;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#isKnown = true;
    this.#endStart();
    this.#poll.close();
    await Promise.all(this.#stores.map((store) => store.close()));
  }

  get #stores(): RedisStore[] {
    return [...this.#nodes.values()].map(({ store }) => store);
  }

  get #serving(): ClusterNode[] {
    return [...this.#nodes.values()].filter(({ slotlessSinceMs }) => slotlessSinceMs === undefined);
  }

  #storeOf(partition: Partition): RedisStore | StorageError {
    const slot = slotOf(partition);
    const node = this.#owners[slot];
    if (node !== undefined) return node.store;
    this.#poll.refresh();
    return unavailable(`no node of the Redis Cluster serves slot ${slot}`);
  }

  #isMoving(slot: number): boolean {
    const untilMicros = this.#moving.get(slot);
    if (untilMicros === undefined) return false;
    if (this.#monotonicMicros() < untilMicros) return true;
    this.#moving.delete(slot);
    return false;
  }

  #noteMoving(slot: number): void {
    this.#moving.set(slot, this.#monotonicMicros() + MOVING_MICROS);
  }

  /** Queries a node on its connection, or on a connection for this query if it has none. */
  #query(node: HostPort): Promise<ClusterView> {
    const store = this.#nodes.get(endpointName(node))?.store;
    if (store?.connected === true) return store.query((redis) => queryNode(redis, node));
    return connectAndQuery(this.#options, node, this.#closing.signal);
  }

  /** Applies a view: waiting calls move to the nodes that now serve their slots. */
  #apply({ ranges }: ClusterView): void {
    this.#owners.fill(undefined);
    const serving = new Set<ClusterNode>();
    let unserved = SLOTS;
    for (const { first, last, master } of ranges) {
      const node = this.#findOrOpen(master);
      serving.add(node);
      this.#owners.fill(node, first, last + 1);
      unserved -= last + 1 - first;
    }
    const now = performance.now();
    for (const node of this.#nodes.values()) {
      node.slotlessSinceMs = serving.has(node) ? undefined : (node.slotlessSinceMs ?? now);
      if (now - (node.slotlessSinceMs ?? now) >= FORGET_MS) this.#remove(node);
    }
    const isFirst = !this.#isKnown;
    this.#isKnown = true;
    this.#endStart();
    for (const store of this.#stores) store.reroute((partition) => this.#storeOf(partition));
    this.#logView(isFirst, unserved);
  }

  /** Removes a node without slots. Calls that it has sent may still end within half a second. */
  #remove({ name, store }: ClusterNode): void {
    this.#nodes.delete(name);
    this.#closedConnections += store.connections.opened;
    store.reroute((partition) => this.#storeOf(partition));
    void store.close();
  }

  #findOrOpen(endpoint: HostPort): ClusterNode {
    const name = endpointName(endpoint);
    const known = this.#nodes.get(name);
    if (known !== undefined) return known;
    const { observeFault } = this.#options;
    const store = new RedisStore({
      ...optionsOf(this.#options, endpoint),
      keys: this.#keys,
      highestTime: this.#highestTime,
      redirect: (batch, error) => this.#redirect(node, batch, error),
      probeTag: () => this.#probeTagOf(node),
      observeFault: (fault) => {
        observeFault?.(fault);
        // Another node may serve its slots now.
        this.#poll.refresh();
      },
    });
    const node: ClusterNode = { endpoint, name, store, slotlessSinceMs: performance.now() };
    this.#nodes.set(name, node);
    store.onUp(this.#upSignal.emit);
    store.onDown(this.#downSignal.emit);
    return node;
  }

  /** Returns a hash tag for a probe of a node, a different one each time, because a slot may be migrating. */
  #probeTagOf(node: ClusterNode): string | undefined {
    if (node.slotlessSinceMs !== undefined) return undefined;
    return tagOfSlots((slot) => this.#owners[slot] === node);
  }

  /** Redirects a refused call (Redis Cluster specification, "Redirection and resharding"). */
  #redirect(from: ClusterNode, batch: ScriptBatch, error: RedisReplyError): ReturnType<Redirect> {
    const { code } = error;
    const slot = slotOf(batch.partition);
    if (code === 'TRYAGAIN') return this.#splitByKey(slot, batch);
    this.#poll.refresh();
    // No node serves the slot, or this node is wrong. The next view may contain another node.
    const [, , address = ''] = error.message.split(' ');
    const endpoint = redirectedEndpoint(address, from.endpoint.host);
    const node = endpoint && this.#findOrOpen(endpoint);
    if (node === undefined || (code === 'MOVED' && node === from)) return 'held';
    if (code === 'ASK') {
      this.#noteMoving(slot);
      batch.asking = true;
    } else {
      this.#owners[slot] = node;
    }
    node.store.adopt(batch);
    return 'taken';
  }

  /**
   * Takes each key of a call separately, because some keys are on this node and others on another node. Redirections
   * then work.
   */
  #splitByKey(slot: number, batch: ScriptBatch): ReturnType<Redirect> {
    if (typeof batch.partition === 'string') return 'failed';
    this.#noteMoving(slot);
    for (const { items, deadlineMicros, resolve } of batch.detachPending())
      void Promise.resolve(this.#options.takeAgain(items, deadlineMicros)).then(resolve);
    return 'emptied';
  }

  #logView(isFirst: boolean, unserved: number): void {
    const { redactedAddress } = this.#options.address;
    this.#loggedFaults.clear();
    if (isFirst) this.#log('info', `Redis ${redactedAddress} has ${plural(this.#serving.length, 'master')}`);
    if (unserved === this.#unserved) return;
    this.#unserved = unserved;
    if (unserved === 0) this.#log('info', `Redis ${redactedAddress} serves all slots`);
    else {
      this.#log(
        'error',
        `no node of Redis ${redactedAddress} serves ${plural(unserved, 'slot')}: on_store_failure decides requests ` +
          'whose buckets are in such a slot; run redis-cli --cluster check, and restart the master, or assign the ' +
          'slots to another master (CLUSTER ADDSLOTS)',
      );
    }
  }

  #onFailed({ message }: Error): void {
    const { address, prefix, observeFault } = this.#options;
    const { label } = nodeFaultOf(message);
    this.#endStart();
    observeFault?.(label);
    // Each known node logs its own failures.
    if (this.connected || this.#loggedFaults.has(label)) return;
    this.#loggedFaults.add(label);
    const why = nodeFaultText(message, prefix ?? 'REDIS');
    this.#log('error', `Redis ${address.redactedAddress} cannot be used, and weir keeps retrying: ${why}`);
  }

  #log(level: 'info' | 'warn' | 'error', sentence: string): void {
    if (!this.#closing.signal.aborted) this.#options.log?.(level, sentence);
  }
}

function unavailable(message: string): StorageError {
  return new StorageError('disconnected', message, { unsent: true });
}

function slotOf(partition: Partition): number {
  return typeof partition === 'number' ? partition : Number.parseInt(partition, 10);
}
