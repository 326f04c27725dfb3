import type { StoreNode } from '../../admin/health-detail.js';
import type { LoadingPolicyProvider } from '../../config/policy-provider.js';
import { isPlanAddress } from '../../config/read/plans/read-plans.js';
import type { GrpcLoad } from '../../grpc/grpc-server.js';
import type { PlanTable } from '../../policy/plans/plan-table.js';
import type { GiveBackStats } from '../../storage/sharded/give-backs.js';
import { GRPC_WAITING, WORKER_STATES } from '../../telemetry/families.js';
import { byName, type FamilyRegistry } from '../../telemetry/family-registry.js';
import type { Metrics } from '../../telemetry/metrics.js';
import type { SpanLosses } from '../calls/tracing.js';

/*
 * The metrics that the parts of a server show at each scrape. src/telemetry/families.ts describes them.
 */

/** Memory and work that callers cause at this moment. All values are 0 without requests. */
export interface Load {
  /** Undefined if the transport does not report it. */
  readonly grpc: GrpcLoad | undefined;
  /** Memory of decoded requests that wait for the store, in bytes. */
  readonly storeWaitingBytes: number;
  /** Large requests that wait for their turn. */
  readonly large: { readonly size: number; readonly bytes: number };
}

const WAITERS = Object.keys(GRPC_WAITING) as (keyof typeof GRPC_WAITING)[];

export function exposeLoad(registry: FamilyRegistry, load: () => Load): void {
  registry.show('weir_large_requests_waiting', () => load().large.size);
  registry.show('weir_large_requests_waiting_bytes', () => load().large.bytes);
  registry.show('weir_store_waiting_bytes', () => load().storeWaitingBytes);
  if (load().grpc === undefined) return;
  registry.show('weir_grpc_connections', () => load().grpc?.connections ?? 0);
  registry.show('weir_grpc_buffered_bytes', () => load().grpc?.bufferedBytes ?? 0);
  registry.show('weir_grpc_waiting', () => {
    const { grpc } = load();
    return WAITERS.map((what) => [{ for: what }, grpc?.[what] ?? 0]);
  });
}

/** Exposes whether this server accepts requests, as `/healthcheck` does. */
export function exposeServing(registry: FamilyRegistry, isServing: () => boolean): void {
  registry.show('weir_serving', () => Number(isServing()));
}

/** Exposes the number of lost lines of the decision log and of lost spans. */
export function exposeLosses(registry: FamilyRegistry, lines: () => number, spans: () => SpanLosses): void {
  registry.show('weir_decision_log_lines_dropped_total', lines);
  registry.show('weir_trace_spans_dropped_total', () => byName('reason', spans()));
}

/** The state of a store that {@link exposeStore} shows. */
export interface ShownStore {
  giveBackStats(): GiveBackStats;
  /** Servers that store buckets. */
  nodes(): readonly StoreNode[];
}

/** Exposes the state of the store, and the results of tokens given back. */
export function exposeStore(registry: FamilyRegistry, store: ShownStore): void {
  registry.show('weir_redis_give_backs_total', () => byName('result', store.giveBackStats()));
  registry.show('weir_redis_node_up', () =>
    store.nodes().map(({ redis, name, up }) => [{ redis, node: name }, Number(up)]),
  );
}

/** Counts policy loads, including the first one, in the metrics of the process that loads them. */
export function measurePolicies(metrics: Metrics, policies: LoadingPolicyProvider): void {
  metrics.exposeDomainStates(() => policies.domains());
  exposePlans(metrics.registry, policies);
  const failed = policies.errors().length > 0;
  // Without a policy and an error, the management server has not sent a configuration yet.
  if (failed || policies.current() !== undefined) metrics.loaded(!failed);
  policies.onReload((success) => metrics.reloaded(success));
}

/** Exposes the rows of `plans`, and the age of their sources. */
export function exposePlans(
  registry: FamilyRegistry,
  policies: Pick<LoadingPolicyProvider, 'current' | 'sources'>,
): void {
  const { sources } = policies;
  function* tables(): Generator<{ readonly domain: string; readonly plans: PlanTable }> {
    for (const [domain, { plans }] of policies.current()?.domains ?? []) {
      if (plans !== undefined) yield { domain, plans };
    }
  }
  registry.show('weir_plan_rows', function* () {
    for (const { domain, plans } of tables()) yield [{ domain }, plans.rowCount];
  });
  registry.show('weir_plan_refused_rows', function* () {
    for (const { domain, plans } of tables()) yield [{ domain }, plans.refused];
  });
  registry.show('weir_plan_source_age_seconds', function* () {
    for (const [source, seconds] of sources?.ages() ?? []) yield [{ source }, seconds];
    for (const { plans } of tables()) {
      const isMissing = plans.file !== '' && plans.rowCount === 0 && !isPlanAddress(plans.file);
      if (isMissing) yield [{ source: plans.file }, (Date.now() - plans.readAtMillis) / 1000];
    }
  });
  registry.show('weir_plan_source_failures_total', function* () {
    for (const [source, reason, count] of sources?.failures() ?? []) yield [{ source, reason }, count];
  });
}

/** The fields of a worker that the metrics need. */
interface ShownWorker {
  /** Undefined until the worker's port is open. */
  readonly health: { readonly reason: string | undefined } | undefined;
  /** Milliseconds since the worker stopped answering; undefined while it answers. */
  readonly silentMs: number | undefined;
}

export function workerState({ health, silentMs }: ShownWorker): keyof typeof WORKER_STATES {
  if (health === undefined) return 'starting';
  if (silentMs !== undefined) return 'silent';
  return health.reason === undefined ? 'serving' : 'not_serving';
}

/** Exposes the workers of a primary process. `differing` returns the number of workers with other policies. */
export function exposeWorkers(
  registry: FamilyRegistry,
  pool: {
    readonly workers: readonly ShownWorker[];
    readonly restarts: number;
    readonly silentKilled: number;
  },
  differing: () => number,
): void {
  registry.show('weir_workers', () => pool.workers.length);
  const states = Object.keys(WORKER_STATES) as (keyof typeof WORKER_STATES)[];
  registry.show('weir_worker_states', () =>
    states.map((state) => [{ state }, pool.workers.filter((worker) => workerState(worker) === state).length]),
  );
  registry.show('weir_workers_with_other_policies', differing);
  registry.show('weir_worker_restarts_total', () => pool.restarts);
  registry.show('weir_silent_workers_killed_total', () => pool.silentKilled);
}
