import { expectState } from '../../../invariant.js';
import { shuffled } from '../../../runtime/shuffled.js';
import { firstAnswers } from '../connection/client/first-answers.js';
import { QueryClients } from '../connection/client/query-client.js';
import type { PreparedTls } from '../connection/dial.js';
import { endpointName, type HostPort } from '../connection/redis-address.js';
import { redisFaultOf } from '../connection/redis-fault.js';
import type { RedisLogin } from '../connection/redis-login.js';
import { type ClusterView, queryNode, type SlotRange } from './cluster-view.js';

/** Nodes asked at a time; any may hang, or not have heard of a change. */
export const QUERIED_NODES = 3;
/** Where none of them answers, others are asked, some at a time; the next look asks other ones. */
export const MAX_CONCURRENT_QUERIES = 16;
export const MAX_FURTHER_NODES = 64;
/** How long others may take whose answer may be newer, once one has answered. Milliseconds. */
const LATER_REPLIES_MS = 100;
/**
 * Pauses between looks that there is a reason for. While they find nothing new, the first pause is the one for the time
 * that a replica usually takes to be promoted, then they are longer. Milliseconds.
 */
const FAST_POLL_MS = 200;
const FAST_POLL_FOR_MS = 30_000;
const SLOW_POLL_MS = 1000;
/** A view of many ranges takes long to read: so much of a pause for each of them. Milliseconds. */
const PAUSE_PER_RANGE_MS = 0.5;
/** Pause between looks without a reason, milliseconds. */
const IDLE_POLL_MS = 10_000;

/** Settings of {@link ClusterFinder}. */
export interface ClusterFinderOptions {
  /** Where some nodes are. */
  readonly seeds: readonly HostPort[];
  readonly tls: PreparedTls | undefined;
  /** `refused` says that nodes did not accept the one before. */
  readonly login: (refused: boolean) => Promise<RedisLogin>;
  /** The variable that names the seeds, as in REDIS_URL. */
  readonly variable: string;
}

/** What a {@link ClusterFinder} tells its owner. */
export interface ClusterFinderEvents {
  /** The newest that a node says. Nothing follows until it is taken over. */
  found(view: ClusterView): void | Promise<void>;
  /** Nobody says anything: why, for the log. */
  failed(reason: string): void;
  /** A node says what cannot be, while others are believed: a sentence for the log. */
  inconsistent(sentence: string): void;
}

/** What a {@link ClusterFinder} is doing; `hasReason`: there may be something new to find. */
type FinderState =
  | { readonly at: 'pause'; readonly timer: NodeJS.Timeout | undefined; readonly hasReason: boolean }
  | { readonly at: 'look'; hasReason: boolean }
  | { readonly at: 'end' };

/**
 * Keeps asking the nodes of a Redis Cluster which of them serve which slots, one look at a time: every ten seconds, and
 * soon after {@link refresh}. Believes the newest of what some nodes say, as one may have been cut off from the others.
 */
export class ClusterFinder {
  readonly #options: ClusterFinderOptions;
  readonly #events: ClusterFinderEvents;
  readonly #clients = new QueryClients();
  /** What was believed last. */
  #view: ClusterView | undefined;
  /** Ids of nodes of another cluster that was found beside it. */
  #foreignNodeIds: ReadonlySet<string> = new Set();
  #state: FinderState = { at: 'pause', timer: undefined, hasReason: false };
  #lastQueryMs = Number.NEGATIVE_INFINITY;
  /** Since when there may have been a reason to look, and nothing new was found. */
  #fastPollSinceMs = performance.now();
  #loginRefused = false;

  constructor(options: ClusterFinderOptions, events: ClusterFinderEvents) {
    this.#options = options;
    this.#events = events;
  }

  /** What is believed may no longer be so, or nothing is known yet. */
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
    expectState(this.#state.at === 'pause', 'a cluster is looked for once at a time');
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
    const isEager = performance.now() - this.#fastPollSinceMs < FAST_POLL_FOR_MS;
    const ranges = this.#view?.ranges.length ?? 0;
    return Math.max(isEager ? FAST_POLL_MS : SLOW_POLL_MS, ranges * PAUSE_PER_RANGE_MS);
  }

  async #adopt(view: ClusterView): Promise<void> {
    if (this.#view === undefined || !isSame(this.#view, view)) this.#fastPollSinceMs = performance.now();
    this.#view = view;
    await this.#events.found(view);
  }

  /** Rejects where no node answers, or where they are of two clusters. */
  async #queryNewestView(): Promise<ClusterView> {
    const { seeds } = this.#options;
    const known = this.#view?.ranges.map(({ master }) => master) ?? [];
    const all = distinct([...known, ...seeds]);
    // At the start all of them, to find out whether they belong together.
    const sampled = this.#view === undefined ? all : shuffled(all).slice(0, QUERIED_NODES);
    let { answers, errors } = await this.#query(sampled);
    // Those that the settings name go first: who named the others may mislead.
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
      const nonNodeError = errors.find((error) => error.includes('is no node of a Redis Cluster'));
      if (nonNodeError !== undefined) this.#events.inconsistent(nonNodeError);
      return view;
    }
    // Who answered knows less than was known before.
    if (this.#view !== undefined && answers.some(({ slots }) => slots > 0)) return this.#view;
    const { variable } = this.#options;
    const actionable = errors.find(
      (error) => error.includes(variable) || /^(?:NOAUTH|WRONGPASS|NOPERM)\b/.test(error),
    );
    if (actionable !== undefined) throw new Error(actionable);
    if (answers.length > 0) {
      throw new Error(
        `no node of the Redis Cluster has slots; give them some (CLUSTER ADDSLOTSRANGE), or correct ${variable}`,
      );
    }
    throw new Error(
      `no node of the Redis Cluster answers; start them, or correct ${variable} (${errors.sort().join('; ')})`,
    );
  }

  async #query(nodes: readonly HostPort[]): Promise<{ answers: ClusterView[]; errors: string[] }> {
    const { login, tls, variable } = this.#options;
    const current = await login(this.#loginRefused);
    const found = await firstAnswers(
      nodes.map((endpoint) => queryNode(this.#clients, { endpoint, tls, login: current }, variable)),
      LATER_REPLIES_MS,
    );
    this.#loginRefused = found.errors.some((error) => redisFaultOf(error).reaction === 'login');
    return found;
  }

  /** The views of the cluster that is known; at the start there must be no other. Views without slots say nothing. */
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
      // All nodes were set up anew, unless these are the ones that never belonged to the cluster.
      const isNewCluster = (view: ClusterView): boolean =>
        intersect(view.ids, first.ids) && !intersect(view.ids, this.#foreignNodeIds);
      return views.filter(isNewCluster);
    }
    this.#foreignNodeIds = other.ids;
    const sentence =
      `${this.#options.variable} names nodes of two Redis Clusters: ${(own[0] as ClusterView).from} belongs to one, ` +
      `${other.from} to another; name nodes of one of them`;
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

/** Whether two views say the same of all slots. */
function isSame(one: ClusterView, other: ClusterView): boolean {
  const isAt = ({ first, last, master }: SlotRange, at: number): boolean => {
    const there = other.ranges[at];
    return (
      there?.first === first &&
      there.last === last &&
      there.master.host === master.host &&
      there.master.port === master.port
    );
  };
  return one.epoch === other.epoch && one.ranges.length === other.ranges.length && one.ranges.every(isAt);
}

function intersect(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  for (const id of one) if (other.has(id)) return true;
  return false;
}

function distinct(nodes: readonly HostPort[]): HostPort[] {
  return [...new Map(nodes.map((node) => [endpointName(node), node])).values()];
}
