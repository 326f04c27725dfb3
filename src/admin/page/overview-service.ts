import type { LoadingPolicyProvider } from '../../config/policy-provider.js';
import { formatProblem } from '../../config/yaml/config-problem.js';
import { type EventFeed, jsonEvent, type SendEvent, type ServerEvent } from '../../http/event-feed.js';
import type { Clock } from '../../limiter/clock.js';
import { phaseAt } from '../../policy/rule.js';
import type { AdminAnswer, AdminCaller, AdminService } from '../admin-access.js';
import type { HealthDetail, StoreNode } from '../health-detail.js';
import type { HistoryPoint, Overview, OverviewAnswer, OverviewDomain, OverviewNode } from './messages.js';

/** Maximum number of listed domains, which takes a tenth of a millisecond. Further ones are counted. */
export const MAX_OVERVIEW_DOMAINS = 200;

/** Maximum number of listed files of a domain. */
const MAX_FILES = 10;

interface OverviewSource {
  readonly clock: Clock;
  readonly policies: Pick<LoadingPolicyProvider, 'current' | 'domains' | 'errors' | 'onReload'>;
  readonly keeps: Overview['keeps'];
  detail(): HealthDetail;
  /** Servers that store buckets, as seen by each process. */
  nodes(): readonly (readonly StoreNode[])[];
}

/** Returns a function that describes the server, and that knows when the policies were last reloaded. */
export function overviewOf({ clock, policies, keeps, detail, nodes }: OverviewSource): () => Overview {
  let reloadedMicros = clock.wallMicros();
  policies.onReload(() => {
    reloadedMicros = clock.wallMicros();
  });
  const overviewDomain = ({ domain, state, files }: Omit<OverviewDomain, 'phase'>): OverviewDomain => {
    const inForce = policies.current()?.domains.get(domain);
    const phase = inForce && { phase: phaseAt(inForce.phase, clock.wallMicros()) };
    return { domain, state, files: files.slice(0, MAX_FILES), ...phase };
  };
  return () => {
    const { status, reason, version, uptimeSeconds, store, storeUp, workers = [] } = detail();
    const errors = policies.errors();
    const domains = policies.domains();
    const inEffect = policies.current()?.version ?? 'none';
    return {
      version,
      now: seconds(clock.wallMicros()),
      uptime_seconds: uptimeSeconds,
      health: { status, ...(reason !== undefined && { reason }) },
      store: { name: store, up: storeUp, nodes: nodesOf(nodes()) },
      workers: workers.map(({ id, pid, status, storeUp, silentSeconds, policy = inEffect }) => ({
        id,
        pid,
        status,
        store_up: storeUp,
        ...(silentSeconds !== undefined && { silent_seconds: Math.round(silentSeconds) }),
        ...(policy !== inEffect && { policy }),
      })),
      policy: {
        version: inEffect,
        domains: domains.slice(0, MAX_OVERVIEW_DOMAINS).map(overviewDomain),
        more_domains: Math.max(0, domains.length - MAX_OVERVIEW_DOMAINS),
        reload: { result: errors.length === 0 ? 'ok' : 'error', at: seconds(reloadedMicros) },
        errors: errors.filter(({ count }) => count === undefined).map(formatProblem),
        more_errors: errors.reduce((sum, { count = 0 }) => sum + count, 0),
      },
      keeps,
    };
  };
}

function seconds(wallMicros: number): number {
  return Math.round(wallMicros / 1000) / 1000;
}

/** Returns each server once, with the number of processes that can use it and the highest latency. */
function nodesOf(processes: readonly (readonly StoreNode[])[]): readonly OverviewNode[] {
  const nodes = new Map<string, OverviewNode>();
  for (const node of processes.flat()) {
    const { redis, name, up, reason, latencyMicros } = node;
    const id = `${redis} ${name}`;
    const known = nodes.get(id);
    const latency = latencyMicros === undefined ? null : Math.round(latencyMicros) / 1000;
    const why = known?.reason ?? reason;
    nodes.set(id, {
      redis,
      node: name,
      up: (known?.up ?? 0) + (up ? 1 : 0),
      of: (known?.of ?? 0) + 1,
      latency_ms: known?.latency_ms == null ? latency : Math.max(known.latency_ms, latency ?? 0),
      ...(why !== undefined && { reason: why }),
    });
  }
  return [...nodes.values()];
}

/** Maximum number of event streams at the same time. */
export const MAX_SUBSCRIBERS = 100;
/** Milliseconds between two checks for changes. */
const CHECK_INTERVAL_MS = 1000;
/** Latencies change all the time, so a change of only latencies is sent after this many checks. */
const CHECKS_PER_LATENCY = 5;

export interface OverviewServiceOptions {
  tell(): Overview;
  point(): HistoryPoint;
  onStep(listener: () => void): void;
}

/** A reader of the event stream. */
interface Subscriber {
  readonly send: SendEvent;
  readonly end: () => void;
}

/**
 * Service of `/overview` on the debug port: the state of the server, once or as events. Each event is encoded once for
 * all readers.
 */
export class OverviewService implements AdminService {
  readonly path = '/overview';
  readonly help = 'the state of this server, as shown on the page: POST {}';
  readonly #options: OverviewServiceOptions;
  readonly #subscribers = new Set<Subscriber>();
  /** Last sent overview, without the fields that change all the time. */
  #lastSent = '';
  #toldLatencies = '';
  #looks = 0;
  /** Runs while there are subscribers. */
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: OverviewServiceOptions) {
    this.#options = options;
    options.onStep(() => {
      if (this.#subscribers.size > 0) this.#sendAll(jsonEvent('point', options.point()));
    });
  }

  rightFor(): 'read' {
    return 'read';
  }

  answer(question: unknown, { by, right }: AdminCaller): AdminAnswer {
    const refusal = refusalOf(question);
    if (refusal !== undefined) return refusal;
    const { tell, point } = this.#options;
    const body: OverviewAnswer = { ...tell(), caller: { by, right }, point: point() };
    return { status: 200, body };
  }

  feed(question: unknown, { by, right }: AdminCaller): EventFeed | AdminAnswer {
    const refusal = refusalOf(question) ?? this.#noRoom();
    if (refusal !== undefined) return refusal;
    return {
      follow: (send, end) => {
        send(jsonEvent('caller', { by, right }));
        const overview = this.#options.tell();
        // The first subscriber has just got the overview. Further subscribers must not hide a change from the others.
        if (this.#subscribers.size === 0) this.#takeIfChanged(overview);
        send(jsonEvent('overview', overview));
        return this.#add({ send, end });
      },
    };
  }

  /** Ends all event streams, because an exiting server does not wait for their readers. */
  close(): void {
    this.#closed = true;
    for (const { end } of this.#subscribers) end();
  }

  #noRoom(): AdminAnswer | undefined {
    if (this.#closed) return failure(503, 'the server is shutting down');
    if (this.#subscribers.size < MAX_SUBSCRIBERS) return undefined;
    return failure(503, `the maximum of ${MAX_SUBSCRIBERS} open pages is reached; close some pages`);
  }

  #add(follower: Subscriber): () => void {
    this.#subscribers.add(follower);
    this.#timer ??= setInterval(() => this.#look(), CHECK_INTERVAL_MS).unref();
    return () => {
      this.#subscribers.delete(follower);
      if (this.#subscribers.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  #look(): void {
    const overview = this.#options.tell();
    if (this.#takeIfChanged(overview)) this.#sendAll(jsonEvent('overview', overview));
  }

  /** Returns whether the overview differs from the last sent one, and stores it as sent. */
  #takeIfChanged(overview: Overview): boolean {
    const { store } = overview;
    const latencies = store.nodes.map(({ latency_ms: latency }) => latency).join();
    const nodes = store.nodes.map((node) => ({ ...node, latency_ms: null }));
    const told = JSON.stringify({ ...overview, now: 0, uptime_seconds: 0, store: { ...store, nodes } });
    if (told === this.#lastSent) {
      if (latencies === this.#toldLatencies || ++this.#looks < CHECKS_PER_LATENCY) return false;
    }
    this.#lastSent = told;
    this.#toldLatencies = latencies;
    this.#looks = 0;
    return true;
  }

  #sendAll(event: ServerEvent): void {
    for (const { send } of this.#subscribers) send(event);
  }
}

function refusalOf(question: unknown): AdminAnswer | undefined {
  const isObject = typeof question === 'object' && question !== null && !Array.isArray(question);
  const isEmpty = isObject && Object.keys(question).length === 0;
  return isEmpty ? undefined : failure(400, 'the body must be the empty JSON object {}');
}

function failure(status: number, error: string): AdminAnswer {
  return { status, body: { error } };
}
