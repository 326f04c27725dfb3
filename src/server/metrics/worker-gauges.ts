import type { FamilyRegistry } from '../../telemetry/family-registry.js';
import { WORKER_STATE, WORKER_STATES } from '../../telemetry/label-meanings.js';

/** The fields of a worker that the metrics need. */
interface ShownWorker {
  /** Undefined until the worker's port is open. */
  readonly health: { readonly reason: string | undefined } | undefined;
  /** Milliseconds since the worker stopped answering; undefined while it answers. */
  readonly silentMs: number | undefined;
}

/** Returns the state of a worker. */
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
  registry.gauge({ name: 'weir_workers', help: 'Running workers.' }, () => pool.workers.length);
  const states = Object.keys(WORKER_STATES) as (keyof typeof WORKER_STATES)[];
  registry.gauge(
    {
      name: 'weir_worker_states',
      help: 'Running workers, by state.',
      labels: { state: WORKER_STATE },
    },
    () =>
      states.map((state) => [
        { state },
        pool.workers.filter((worker) => workerState(worker) === state).length,
      ]),
  );
  registry.gauge(
    {
      name: 'weir_workers_with_other_policies',
      help: 'Workers whose policies differ from those of the primary.',
    },
    differing,
  );
  registry.counter(
    {
      name: 'weir_worker_restarts_total',
      help: 'Workers that crashed and were replaced.',
    },
    () => pool.restarts,
  );
  registry.counter(
    {
      name: 'weir_silent_workers_killed_total',
      help: 'Workers that stopped answering, and were killed and replaced.',
    },
    () => pool.silentKilled,
  );
}
