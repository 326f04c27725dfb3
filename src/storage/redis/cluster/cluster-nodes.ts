import { expectState } from '../../../invariant.js';
import { type BucketStore, StorageError, type TakeItem } from '../../../limiter/bucket-store.js';
import { turn } from '../../../runtime/turns.js';
import type { Partition } from '../../sharded/shard.js';
import type { ConnectionCounts } from '../connection/connection-options.js';
import { endpointName, type HostPort, readHostPort } from '../connection/redis-address.js';
import { RedisReplyError } from '../connection/redis-error.js';
import type { RedisNodeState } from '../redis-buckets.js';
import type { RedisStore } from '../redis-store.js';
import type { ScriptReply, ScriptRequest } from '../script-requests/script-request.js';
import type { TakeBatch } from '../take-batch.js';
import type { ClusterView } from './cluster-view.js';
import { isRedirection, type Redirect } from './redirect.js';
import { type BucketSlots, slotOfKey, tagOfSlots } from './slot-keys.js';
import { formatUnassignedSlots, SlotTable, slotOf } from './slot-table.js';

/** Maximum number of nodes in a Redis Cluster (Redis Cluster specification, "Main properties"). */
export const MAX_CLUSTER_NODES = 1000;
/** Maximum number of nodes without known slots. Redirects can name any number of nodes. */
const MAX_SLOTLESS_NODES = 32;
/** Time for which a node without slots is kept, in milliseconds, because migrated slots may return. */
const FORGET_MS = 10_000;

/** Maximum time of opening nodes in one turn of the event loop, in milliseconds. */
const SLICE_MS = 2;

/** A node that stores buckets, or may store some soon. */
interface ClusterNode {
  readonly endpoint: HostPort;
  readonly name: string;
  readonly store: RedisStore;
  state: NodeState;
}

/** Whether a node is known from a redirect, serves slots, or served slots until a time, in milliseconds. */
type NodeState =
  | { readonly at: 'named' }
  | { readonly at: 'serving' }
  | { readonly at: 'idle'; readonly sinceMs: number };

const FROM_REDIRECT: NodeState = { at: 'named' };
const SERVING: NodeState = { at: 'serving' };

/** Options of a node that depend on the cluster. */
export interface ClusterNodeOptions {
  readonly redirect: Redirect;
  readonly probeTag: () => string | undefined;
}

/** Settings of {@link ClusterNodes}. */
export interface ClusterNodesOptions {
  readonly slots: BucketSlots;
  readonly monotonicMicros: () => number;
  /** Connects to a node in the background. */
  readonly open: (endpoint: HostPort, options: ClusterNodeOptions) => RedisStore;
  /** Repeats a take that a node could not answer in one call. */
  readonly takeAgain: BucketStore['take'];
  /** Called when the known slots may be outdated. */
  readonly onStaleSlots: () => void;
}

/** The masters of a Redis Cluster and the slots of each. Also handles redirected calls. */
export class ClusterNodes {
  readonly #options: ClusterNodesOptions;
  readonly #nodes = new Map<string, ClusterNode>();
  readonly #table: SlotTable<ClusterNode>;
  /** Removed nodes with unanswered calls. */
  readonly #removed = new Set<RedisStore>();
  #isClosed = false;
  /** Connections of nodes that were removed. */
  #closedConnections = 0;

  constructor(options: ClusterNodesOptions) {
    this.#options = options;
    this.#table = new SlotTable(options.slots, options.monotonicMicros);
  }

  get stores(): RedisStore[] {
    return [...this.#nodes.values()].map(({ store }) => store);
  }

  /** The nodes that serve slots. */
  get states(): RedisNodeState[] {
    return this.#serving.map(({ name, store }) => ({ ...store.nodes[0], name }));
  }

  /** Whether any of them decides. */
  get isAnyUp(): boolean {
    return this.#serving.some(({ store }) => store.connected);
  }

  /** Whether nodes that decide serve all slots. */
  get areAllUp(): boolean {
    return this.#serving.every(({ store }) => store.connected) && this.unassignedSlots === '';
  }

  /** The slots that no node serves, as text; empty if nodes serve all slots. */
  get unassignedSlots(): string {
    return formatUnassignedSlots((slot) => this.#table.ownerOf(slot));
  }

  get connections(): ConnectionCounts {
    const counts = { active: 0, opened: this.#closedConnections, closed: this.#closedConnections };
    for (const { connections } of [...this.stores, ...this.#removed]) {
      counts.active += connections.active;
      counts.opened += connections.opened;
      counts.closed += connections.closed;
    }
    return counts;
  }

  partitionOf(item: TakeItem): Partition {
    return this.#table.partitionOf(item);
  }

  shardOf(partition: Partition): RedisStore | StorageError {
    const slot = slotOf(partition);
    const node = this.#table.ownerOf(slot);
    return node === undefined ? this.#unservedSlot(slot) : node.store;
  }

  /** Runs a script on the node that serves its key, see {@link RedisBuckets.runScript}. Follows one redirection. */
  async runScript(request: ScriptRequest): Promise<ScriptReply> {
    const slot = slotOfKey(request.key);
    const node = this.#table.ownerOf(slot);
    if (node === undefined) return this.#unservedSlot(slot);
    const answer = await node.store.runScript(request);
    const cause = typeof answer === 'string' ? undefined : answer.cause;
    if (!(cause instanceof RedisReplyError) || !isRedirection(cause)) return answer;
    this.#options.onStaleSlots();
    const [code, , address = ''] = cause.message.split(' ');
    const other = code === 'MOVED' || code === 'ASK' ? this.#nodeAt(address, node.name) : undefined;
    if (other === undefined || other === node) return answer;
    if (code === 'MOVED') this.#table.setOwner(slot, other);
    return other.store.runScript(request, code === 'ASK');
  }

  /**
   * Opens the nodes of a view, in slices. Then applies the view: waiting calls move to the nodes that now serve their
   * slots.
   */
  async apply({ ranges }: ClusterView): Promise<void> {
    let sliceMs = performance.now();
    for (const { master } of ranges) {
      this.#findOrOpen(master);
      if (performance.now() - sliceMs < SLICE_MS) continue;
      await turn();
      if (this.#isClosed) return;
      sliceMs = performance.now();
    }
    this.#table.clear();
    const serving = new Set<ClusterNode>();
    for (const { first, last, master } of ranges) {
      const node = this.#findOrOpen(master);
      if (node === undefined) continue;
      serving.add(node);
      for (let slot = first; slot <= last; slot++) this.#table.setOwner(slot, node);
    }
    for (const node of this.#nodes.values()) {
      if (serving.has(node)) node.state = SERVING;
      else this.#removeIfIdle(node);
    }
    for (const { store } of this.#nodes.values()) store.reroute((partition) => this.shardOf(partition));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.stores, ...this.#removed].map((store) => store.close()));
  }

  #unservedSlot(slot: number): StorageError {
    this.#options.onStaleSlots();
    return new StorageError('disconnected', `no node of the Redis Cluster serves slot ${slot}`, {
      unsent: true,
    });
  }

  get #serving(): ClusterNode[] {
    return [...this.#nodes.values()].filter(({ state }) => state.at === 'serving');
  }

  /** Returns the node at an address, opened if needed; undefined if there are too many nodes. */
  #findOrOpen(endpoint: HostPort): ClusterNode | undefined {
    const name = endpointName(endpoint);
    const known = this.#nodes.get(name);
    if (known !== undefined) return known;
    if (this.#nodes.size >= MAX_CLUSTER_NODES) return undefined;
    const store = this.#options.open(endpoint, {
      redirect: (batch, error) => this.#redirect(name, batch, error),
      probeTag: () => this.#probeTagOf(name),
    });
    const node: ClusterNode = { endpoint, name, store, state: FROM_REDIRECT };
    this.#nodes.set(name, node);
    return node;
  }

  /** Returns a hash tag for a probe of a node, a different one each time, because a slot may be migrating. */
  #probeTagOf(name: string): string | undefined {
    const node = this.#nodes.get(name);
    if (node?.state.at !== 'serving') return undefined;
    return tagOfSlots((slot) => this.#table.ownerOf(slot) === node);
  }

  /** Removes a node that has had no slots for a while. */
  #removeIfIdle(node: ClusterNode): void {
    if (node.state.at !== 'idle') node.state = { at: 'idle', sinceMs: performance.now() };
    if (performance.now() - node.state.sinceMs < FORGET_MS) return;
    const { name, store } = node;
    expectState(!this.#table.has(node), 'a removed node serves no slots');
    this.#nodes.delete(name);
    this.#removed.add(store);
    // Sent calls continue until they end.
    store.reroute((partition) => this.shardOf(partition));
    void store.close().then(() => {
      this.#removed.delete(store);
      this.#closedConnections += store.connections.opened;
    });
  }

  /** Redirects a refused call (Redis Cluster specification, "Redirection and resharding"). */
  #redirect(from: string, batch: TakeBatch, { message }: RedisReplyError): ReturnType<Redirect> {
    const [code, , address = ''] = message.split(' ');
    const slot = slotOf(batch.partition);
    if (code === 'TRYAGAIN') return this.#splitByKey(slot, batch);
    this.#options.onStaleSlots();
    // No node serves the slot, or this node is wrong. The next view may contain another node.
    if (code !== 'MOVED' && code !== 'ASK') return 'held';
    const node = this.#nodeAt(address, from);
    // The reply contains no address, or there are too many nodes.
    if (node === undefined) return 'held';
    if (code === 'ASK') {
      this.#table.noteMoving(slot);
      batch.asking = true;
    } else {
      if (node.name === from) return 'held';
      this.#table.setOwner(slot, node);
    }
    node.store.adopt(batch);
    return 'taken';
  }

  /**
   * Takes each key of a call separately, because some keys are on this node and others on another node. Redirections
   * then work.
   */
  #splitByKey(slot: number, batch: TakeBatch): ReturnType<Redirect> {
    if (typeof batch.partition === 'string') return 'failed';
    this.#table.noteMoving(slot);
    for (const { items, deadlineMicros, resolve } of batch.detachPending()) {
      void Promise.resolve(this.#options.takeAgain(items, deadlineMicros)).then(resolve);
    }
    return 'emptied';
  }

  /**
   * Returns the node at `address` in a redirect from the node `from`. An empty host means the host of `from`. A node
   * without a known host name sends `?`, which means the same.
   */
  #nodeAt(address: string, from: string): ClusterNode | undefined {
    const host = this.#nodes.get(from)?.endpoint.host ?? '';
    const endpoint = endpointOf(/^:\d+$/.test(address) ? host + address : address);
    if (endpoint === undefined) return undefined;
    const known = this.#nodes.get(endpointName(endpoint));
    if (known !== undefined) return known;
    let slotless = 0;
    for (const { state } of this.#nodes.values()) if (state.at !== 'serving') slotless++;
    return slotless < MAX_SLOTLESS_NODES ? this.#findOrOpen(endpoint) : undefined;
  }
}

/** Addresses in redirects contain IPv6 addresses without brackets. */
function endpointOf(address: string): HostPort | undefined {
  const [, host = '', port = ''] = /^(.*):(\d{1,5})$/.exec(address) ?? [];
  try {
    return readHostPort(host.includes(':') ? `[${host}]:${port}` : address);
  } catch {
    return undefined;
  }
}
