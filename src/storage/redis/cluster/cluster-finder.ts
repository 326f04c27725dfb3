import { expectState } from '../../../invariant.js';
import { shuffled } from '../../../runtime/shuffled.js';
import { firstAnswers } from '../connection/client/first-answers.js';
import { QueryClients } from '../connection/client/query-client.js';
import type { PreparedTls } from '../connection/dial.js';
import { endpointName, type HostPort } from '../connection/redis-address.js';
import type { RedisLogin } from '../connection/redis-login.js';
import { type ClusterView, queryNode, type SlotRange } from './cluster-view.js';

/** Number of nodes in each query. Some of them may hang, or not know the latest change. */
export const QUERIED_NODES = 3;
/** Maximum number of concurrent queries to further nodes, if none of the queried nodes replies. */
export const MAX_CONCURRENT_QUERIES = 16;
export const MAX_FURTHER_NODES = 64;
/** Time to wait for further replies after the first one, in milliseconds, because they may be newer. */
const LATER_REPLIES_MS = 100;
/**
 * Pauses between queries while the slots may have changed, in milliseconds. The short pause applies for the time that
 * the promotion of a replica usually takes, and again after each new view. Afterwards, the long pause applies.
 */
const FAST_POLL_MS = 200;
const FAST_POLL_FOR_MS = 30_000;
const SLOW_POLL_MS = 1000;
/** Additional pause for each range of slots, in milliseconds, because a view with many ranges takes long to read. */
const PAUSE_PER_RANGE_MS = 0.5;
/** Pause between queries while nothing suggests a change, in milliseconds. */
const IDLE_POLL_MS = 10_000;

/** Settings of {@link ClusterFinder}. */
export interface ClusterFinderOptions {
  /** Addresses of some nodes. */
  readonly seeds: readonly HostPort[];
  readonly tls: PreparedTls | undefined;
  readonly login: () => Promise<RedisLogin>;
  /** Name of the variable that contains the seeds, such as REDIS_URL. */
  readonly variable: string;
}

/** Events of a {@link ClusterFinder}. */
export interface ClusterFinderEvents {
  /** Receives the newest view of any node. The next query starts after it settles. */
  found(view: ClusterView): void | Promise<void>;
  /** No node replied; `reason` is for the log. */
  failed(reason: string): void;
  /** The nodes belong to two clusters; `sentence` is for the log. */
  inconsistent(sentence: string): void;
}

/** State of a {@link ClusterFinder}; `hasReason`: the slots may have changed. */
type FinderState =
  | { readonly at: 'pause'; readonly timer: NodeJS.Timeout | undefined; readonly hasReason: boolean }
  | { readonly at: 'look'; hasReason: boolean }
  | { readonly at: 'end' };

/**
 * Queries the nodes of a Redis Cluster for the owners of its slots, one query at a time: every ten seconds, and soon
 * after {@link refresh}. Uses the newest reply, because a node may be partitioned from the others.
 */
export class ClusterFinder {
  readonly #options: ClusterFinderOptions;
  readonly #events: ClusterFinderEvents;
  readonly #clients = new QueryClients();
  /** The latest view. */
  #view: ClusterView | undefined;
  /** Ids of nodes that replied but belong to another cluster. */
  #foreignNodeIds: ReadonlySet<string> = new Set();
  #state: FinderState = { at: 'pause', timer: undefined, hasReason: false };
  #lastQueryMs = Number.NEGATIVE_INFINITY;
  /** Start of the fast pauses: the time of the first call of {@link refresh}, or of the latest new view. */
  #fastPollSinceMs = performance.now();

  constructor(options: ClusterFinderOptions, events: ClusterFinderEvents) {
    this.#options = options;
    this.#events = events;
  }

  /** Queries soon, because the view may be outdated, or no view is known. */
  refresh(): void {
    const state = this.#state;
    if (state.at === 'look') state.hasReason = true;
    if (state.at === 'pause' && !state.hasReason) this.#pause(this.#pauseMs(), true);
  }

  close(): void {
    if (this.#state.at === 'pause') clearTimeout(this.#state.timer);
    this.#state = { at: 'end' };
    this.#clients.close();
  }

  #pause(ms: number, hasReason: boolean): void {
    if (this.#state.at === 'pause') clearTimeout(this.#state.timer);
    const waitMs = Math.max(0, this.#lastQueryMs + ms - performance.now());
    this.#state = { at: 'pause', timer: setTimeout(() => void this.#run(), waitMs), hasReason };
  }

  async #run(): Promise<void> {
    expectState(this.#state.at === 'pause', 'only one discovery of the cluster runs at a time');
    const hadReason = this.#state.at === 'pause' && this.#state.hasReason;
    const look: FinderState = { at: 'look', hasReason: false };
    this.#state = look;
    const hasEnded = (): boolean => this.#state !== look;
    let found = false;
    try {
      const view = await this.#queryNewestView();
      found = true;
      if (!hasEnded()) await this.#adopt(view);
    } catch (error) {
      if (!hasEnded()) this.#events.failed((error as Error).message);
    }
    if (hasEnded()) return;
    this.#lastQueryMs = performance.now();
    if (found && !hadReason) this.#fastPollSinceMs = this.#lastQueryMs;
    const { hasReason } = look;
    this.#pause(hasReason || !found ? this.#pauseMs() : IDLE_POLL_MS, hasReason);
  }

  #pauseMs(): number {
    const isFastPolling = performance.now() - this.#fastPollSinceMs < FAST_POLL_FOR_MS;
    const ranges = this.#view?.ranges.length ?? 0;
    return Math.max(isFastPolling ? FAST_POLL_MS : SLOW_POLL_MS, ranges * PAUSE_PER_RANGE_MS);
  }

  async #adopt(view: ClusterView): Promise<void> {
    if (this.#view === undefined || !isSame(this.#view, view)) this.#fastPollSinceMs = performance.now();
    this.#view = view;
    await this.#events.found(view);
  }

  /** Returns the newest view. Rejects if no node replies, or if the nodes belong to two clusters. */
  async #queryNewestView(): Promise<ClusterView> {
    const { seeds } = this.#options;
    const known = this.#view?.ranges.map(({ master }) => master) ?? [];
    const all = distinct([...known, ...seeds]);
    // The first query includes all nodes, to check that they belong to one cluster.
    const sampled = this.#view === undefined ? all : shuffled(all).slice(0, QUERIED_NODES);
    let { answers, errors } = await this.#query(sampled);
    // The seeds come first, because the nodes that other nodes named may be wrong.
    const queried = new Set(sampled.map(endpointName));
    const others = distinct([...seeds, ...shuffled(known)]).filter(
      (node) => !queried.has(endpointName(node)),
    );
    const maxFurther = Math.min(others.length, MAX_FURTHER_NODES);
    for (let at = 0; answers.length === 0 && at < maxFurther; at += MAX_CONCURRENT_QUERIES) {
      ({ answers, errors } = await this.#query(others.slice(at, at + MAX_CONCURRENT_QUERIES)));
    }
    const view = newestOf(this.#ofOneCluster(answers));
    if (view !== undefined) {
      const nonNodeError = errors.find((error) => error.includes('is not a node of a Redis Cluster'));
      if (nonNodeError !== undefined) this.#events.inconsistent(nonNodeError);
      return view;
    }
    // All replies are older than the known view.
    if (this.#view !== undefined && answers.some(({ slots }) => slots > 0)) return this.#view;
    const { variable } = this.#options;
    const actionable = errors.find(
      (error) => error.includes(variable) || /^(?:NOAUTH|WRONGPASS|NOPERM)\b/.test(error),
    );
    if (actionable !== undefined) throw new Error(actionable);
    if (answers.length > 0) {
      throw new Error(
        `no node of the Redis Cluster has slots; assign slots (CLUSTER ADDSLOTSRANGE), or correct ${variable}`,
      );
    }
    throw new Error(
      `no node of the Redis Cluster answers; start the nodes, or correct ${variable} (${errors.sort().join('; ')})`,
    );
  }

  async #query(nodes: readonly HostPort[]): Promise<{ answers: ClusterView[]; errors: string[] }> {
    const { login, tls, variable } = this.#options;
    const current = await login();
    return firstAnswers(
      nodes.map((endpoint) => queryNode(this.#clients, { endpoint, tls, login: current }, variable)),
      LATER_REPLIES_MS,
    );
  }

  /**
   * Returns the views of the known cluster. The first query fails if the views belong to two clusters. Views without
   * slots are ignored.
   */
  #ofOneCluster(answers: readonly ClusterView[]): readonly ClusterView[] {
    const views = answers.filter(({ slots }) => slots > 0);
    const [first] = views;
    const known = this.#view === undefined ? first : this.#view;
    if (first === undefined || known === undefined) return [];
    const own = views.filter((view) => intersect(view.ids, known.ids));
    const newest = this.#view?.epoch ?? 0;
    const other = views.find((view) => !own.includes(view));
    if (other === undefined) return own.filter(({ epoch }) => epoch >= newest);
    if (own.length === 0) {
      // All nodes belong to a new cluster, unless these nodes never belonged to the known one.
      const isNewCluster = (view: ClusterView): boolean =>
        intersect(view.ids, first.ids) && !intersect(view.ids, this.#foreignNodeIds);
      return views.filter(isNewCluster);
    }
    this.#foreignNodeIds = other.ids;
    const sentence =
      `${this.#options.variable} lists nodes of two Redis Clusters: ${(own[0] as ClusterView).from} ` +
      `belongs to one, and ${other.from} belongs to another; list nodes of one cluster only`;
    if (this.#view === undefined) throw new Error(sentence);
    this.#events.inconsistent(sentence);
    return own.filter(({ epoch }) => epoch >= newest);
  }
}

function newestOf(views: readonly ClusterView[]): ClusterView | undefined {
  let newest: ClusterView | undefined;
  for (const view of views) {
    const isNewer =
      newest === undefined ||
      view.epoch > newest.epoch ||
      (view.epoch === newest.epoch && view.slots > newest.slots);
    if (isNewer) newest = view;
  }
  return newest;
}

/** Returns whether two views have the same slots and owners. */
function isSame(one: ClusterView, other: ClusterView): boolean {
  const hasRangeAt = ({ first, last, master }: SlotRange, at: number): boolean => {
    const otherRange = other.ranges[at];
    return (
      otherRange?.first === first &&
      otherRange.last === last &&
      otherRange.master.host === master.host &&
      otherRange.master.port === master.port
    );
  };
  return (
    one.epoch === other.epoch && one.ranges.length === other.ranges.length && one.ranges.every(hasRangeAt)
  );
}

function intersect(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  for (const id of one) if (other.has(id)) return true;
  return false;
}

function distinct(nodes: readonly HostPort[]): HostPort[] {
  return [...new Map(nodes.map((node) => [endpointName(node), node])).values()];
}
