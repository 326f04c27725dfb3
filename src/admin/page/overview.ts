import type { LoadingPolicyProvider } from '../../config/policy-provider.js';
import { formatProblem } from '../../config/yaml/config-problem.js';
import type { Clock } from '../../limiter/clock.js';
import { phaseAt } from '../../policy/rule.js';
import type { HealthDetail, StoreNode } from '../health-detail.js';
import type { Overview, OverviewDomain, OverviewNode } from './messages.js';

/** Maximum number of listed domains, which takes a tenth of a millisecond. Further ones are counted. */
export const MAX_OVERVIEW_DOMAINS = 200;

/** Maximum number of listed files of a domain. */
const MAX_FILES = 10;

export interface OverviewSource {
  readonly clock: Clock;
  readonly policies: Pick<LoadingPolicyProvider, 'current' | 'domains' | 'errors' | 'onReload'>;
  readonly keeps: Overview['keeps'];
  detail(): HealthDetail;
  /** Servers that store buckets, as seen by each process. */
  nodes(): readonly (readonly StoreNode[])[];
}

/** Builds overviews of the server, and remembers when the policies were last reloaded. */
export class OverviewBuilder {
  readonly #source: OverviewSource;
  #reloadedMicros: number;

  constructor(source: OverviewSource) {
    const { clock, policies } = source;
    this.#source = source;
    this.#reloadedMicros = clock.wallMicros();
    policies.onReload(() => {
      this.#reloadedMicros = clock.wallMicros();
    });
  }

  tell(): Overview {
    const { clock, policies, keeps } = this.#source;
    const { status, reason, version, uptimeSeconds, store, storeUp, workers = [] } = this.#source.detail();
    const errors = policies.errors();
    const domains = policies.domains();
    const inEffect = policies.current()?.version ?? 'none';
    return {
      version,
      now: seconds(clock.wallMicros()),
      uptime_seconds: uptimeSeconds,
      health: { status, ...(reason !== undefined && { reason }) },
      store: { name: store, up: storeUp, nodes: nodesOf(this.#source.nodes()) },
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
        domains: domains.slice(0, MAX_OVERVIEW_DOMAINS).map((one) => this.#domain(one)),
        more_domains: Math.max(0, domains.length - MAX_OVERVIEW_DOMAINS),
        reload: { result: errors.length === 0 ? 'ok' : 'error', at: seconds(this.#reloadedMicros) },
        errors: errors.filter(({ count }) => count === undefined).map(formatProblem),
        more_errors: errors.reduce((sum, { count = 0 }) => sum + count, 0),
      },
      keeps,
    };
  }

  #domain({ domain, state, files }: Pick<OverviewDomain, 'domain' | 'state' | 'files'>): OverviewDomain {
    const { policies, clock } = this.#source;
    const inForce = policies.current()?.domains.get(domain);
    const phase = inForce && { phase: phaseAt(inForce.phase, clock.wallMicros()) };
    return { domain, state, files: files.slice(0, MAX_FILES), ...phase };
  }
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
