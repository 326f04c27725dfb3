import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from '../../../runtime/ioredis.js';
import { ignore } from '../../../runtime/signal.js';
import type { RedisServerOptions } from '../connection/connection-options.js';
import { endpointName, type HostPort } from '../connection/redis-address.js';
import { RedisReplyError } from '../connection/redis-error.js';
import { optionsOf, withRedis } from '../with-redis.js';

/** Number of masters in each query. Some of them may hang, or not know the latest change. */
export const QUERIED_MASTERS = 3;
/** Time to wait for further replies after the first one, in milliseconds, because they may be newer. */
const LATER_REPLIES_MS = 100;
/** Pauses between queries in milliseconds: while the slots may have changed, and while nothing suggests a change. */
const STALE_POLL_MS = 250;
const IDLE_POLL_MS = 10_000;

/** Consecutive slots that one master serves. */
export interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly master: HostPort;
}

/** The state of a cluster according to one node. */
export interface ClusterView {
  /** Name of that node for the log. */
  readonly from: string;
  /** Configuration epoch, which rises with each change of slots. The view with the largest epoch is the newest. */
  readonly epoch: number;
  readonly ranges: readonly SlotRange[];
  /** Ids of the nodes with slots, including replicas. Two views of one cluster share ids. */
  readonly ids: ReadonlySet<string>;
}

/** Queries the node at `asked` for the owners of slots (CLUSTER SLOTS) and the epoch (CLUSTER INFO). */
export async function queryNode(redis: Redis, asked: HostPort): Promise<ClusterView> {
  const [slots, info] = await Promise.all([
    redis.call('CLUSTER', 'SLOTS'),
    // Without permission for CLUSTER INFO, the epoch is unknown, and the first reply counts as the newest.
    redis.call('CLUSTER', 'INFO').catch(() => ''),
  ]);
  return readView(asked, slots, String(info));
}

/** Does {@link queryNode} on a connection of its own. */
export function connectAndQuery(
  options: RedisServerOptions,
  node: HostPort,
  signal: AbortSignal,
): Promise<ClusterView> {
  return withRedis(optionsOf(options, node), signal, (redis) => queryNode(redis, node));
}

/** Parses the replies of the node at `asked` to CLUSTER SLOTS and CLUSTER INFO. Throws an Error for another format. */
export function readView(asked: HostPort, slots: unknown, info: string): ClusterView {
  if (!Array.isArray(slots) || !slots.every(Array.isArray))
    throw new Error('unexpected reply to CLUSTER SLOTS');
  const ids = new Set<string>();
  const ranges = slots.map(([first, last, master, ...replicas]) => {
    for (const [host, port, id] of [master, ...replicas]) ids.add(String(id ?? `${host}:${port}`));
    const [host, port, , more] = master;
    return {
      first: Number(first),
      last: Number(last),
      master: { host: hostOf(host, more) ?? asked.host, port: Number(port) },
    };
  });
  const epoch = Number(/cluster_current_epoch:(\d+)/.exec(info)?.[1] ?? 0);
  return { from: endpointName(asked), epoch, ranges, ids };
}

/**
 * Returns the host of a node. A node that does not know its own address returns null or an empty string; a node without
 * a host name returns `?` (Redis documentation, CLUSTER SLOTS). Returns the IP address in these cases, or undefined if
 * the reply contains no IP address.
 */
function hostOf(host: unknown, more: unknown): string | undefined {
  if (typeof host === 'string' && host !== '' && host !== '?') return host;
  const at = Array.isArray(more) ? more.indexOf('ip') : -1;
  return at < 0 ? undefined : String((more as unknown[])[at + 1]);
}

/**
 * Returns the address in a redirect, or undefined without an address. An empty host means `host`, the host of the node
 * that redirects. A node without a known host name sends `?`. IPv6 addresses have no brackets.
 */
export function redirectedEndpoint(address: string, host: string): HostPort | undefined {
  const [, named, port] = /^(.*):(\d{1,5})$/.exec(address) ?? [];
  if (named === undefined || named === '?') return undefined;
  return { host: named || host, port: Number(port) };
}

/**
 * Returns the newest view of the nodes of a cluster: of some masters in `known`, or else of the seeds. A node may be
 * partitioned from the others, so an older view than `known` is ignored. `query` asks one node. Rejects with an Error
 * for the log if no node replies, or if the seeds belong to two clusters.
 */
export async function newestView(
  seeds: readonly HostPort[],
  known: ClusterView | undefined,
  query: (node: HostPort) => Promise<ClusterView>,
): Promise<ClusterView> {
  const masters = new Map(known?.ranges.map(({ master }) => [endpointName(master), master]));
  const errors: Error[] = [];
  for (const nodes of [shuffled([...masters.values()]).slice(0, QUERIED_MASTERS), seeds]) {
    const views = await firstViews(nodes.map(query), errors);
    const newest = newestOf(
      views.filter(({ ranges }) => ranges.length > 0),
      known,
    );
    if (newest !== undefined) return newest;
    if (views.length > 0) throw new Error('no node of the Redis Cluster has slots');
  }
  // The reply of a node is more useful than an error of a connection.
  const reply = errors.find((error) => error instanceof RedisReplyError);
  const texts = new Set(errors.map(({ message }) => message));
  throw reply ?? new Error(`no node of the Redis Cluster answers: ${[...texts].sort().join('; ')}`);
}

/** Resolves when all queries have settled, or shortly after the first reply. Adds errors to `errors`. */
async function firstViews(queries: readonly Promise<ClusterView>[], errors: Error[]): Promise<ClusterView[]> {
  const views: ClusterView[] = [];
  const all = queries.map((query) =>
    query.then(
      (view) => views.push(view),
      (error: Error) => errors.push(error),
    ),
  );
  const later = Promise.any(queries).then(() => pause(LATER_REPLIES_MS, undefined, { ref: false }), ignore);
  await Promise.race([Promise.all(all), later]);
  return [...views];
}

function newestOf(views: readonly ClusterView[], known: ClusterView | undefined): ClusterView | undefined {
  const [first] = views;
  const other = views.find((view) => first !== undefined && !shareIds(view, first));
  if (known === undefined && first !== undefined && other !== undefined)
    throw new Error(`${first.from} and ${other.from} belong to different Redis Clusters`);
  const own = views.filter((view) => known !== undefined && shareIds(view, known));
  let newest = own.length > 0 ? known : undefined;
  // If no node belongs to the known cluster, another one has replaced it.
  for (const view of own.length > 0 ? own : views)
    if (newest === undefined || view.epoch >= newest.epoch) newest = view;
  return newest;
}

function shareIds(one: ClusterView, other: ClusterView): boolean {
  return [...one.ids].some((id) => other.ids.has(id));
}

/** Settings of {@link ClusterPoll}. */
export interface ClusterPollOptions {
  /** Addresses of some nodes. */
  readonly seeds: readonly HostPort[];
  /** Asks one node. */
  query(node: HostPort): Promise<ClusterView>;
  /** Receives the newest view of any node. */
  found(view: ClusterView): void;
  /** No node replied. */
  failed(error: Error): void;
}

/** Asks for the {@link newestView} of a cluster, one at a time: every ten seconds, and soon after {@link refresh}. */
export class ClusterPoll {
  readonly #options: ClusterPollOptions;
  #view: ClusterView | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isQuerying = false;
  #isClosed = false;
  /** Whether the slots may have changed since the start of the latest query. */
  #isStale = false;
  #lastQueryMs = Number.NEGATIVE_INFINITY;

  constructor(options: ClusterPollOptions) {
    this.#options = options;
  }

  /** Queries soon, because the view may be outdated, or no view is known. */
  refresh(): void {
    if (this.#isStale) return;
    this.#isStale = true;
    this.#schedule();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    if (this.#isQuerying || this.#isClosed) return;
    clearTimeout(this.#timer);
    const pauseMs = this.#isStale ? STALE_POLL_MS : IDLE_POLL_MS;
    const waitMs = Math.max(0, this.#lastQueryMs + pauseMs - performance.now());
    this.#timer = setTimeout(() => void this.#query(), waitMs);
  }

  async #query(): Promise<void> {
    const { seeds, query, found, failed } = this.#options;
    this.#isQuerying = true;
    this.#isStale = false;
    try {
      const view = await newestView(seeds, this.#view, query);
      if (this.#isClosed) return;
      this.#view = view;
      found(view);
    } catch (error) {
      if (this.#isClosed) return;
      this.#isStale = true;
      failed(error as Error);
    } finally {
      this.#isQuerying = false;
      this.#lastQueryMs = performance.now();
      this.#schedule();
    }
  }
}

/** Fisher–Yates. */
function shuffled<T>(values: readonly T[]): T[] {
  const copy = [...values];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [copy[i], copy[j]] = [copy[j] as T, copy[i] as T];
  }
  return copy;
}
