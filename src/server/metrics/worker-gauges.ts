import type { FamilyRegistry } from '../../telemetry/family-registry.js';
import { WORKER_STATE, WORKER_STATES } from '../../telemetry/label-meanings.js';

/** A worker process, as far as it is needed here. */
interface ShownWorker {
  /** Undefined until its port is open. */
  readonly health: { readonly reason: string | undefined } | undefined;
  /** How long it has not answered; undefined while it does. */
  readonly silentMs: number | undefined;
}

/** How a worker process stands. */
export function workerState({ health, silentMs }: ShownWorker): keyof typeof WORKER_STATES {
  if (health === undefined) return 'starting';
  if (silentMs !== undefined) return 'silent';
  return health.reason === undefined ? 'serving' : 'not_serving';
}

/** Shows the worker processes of a primary one. */
export function exposeWorkers(
  registry: FamilyRegistry,
  pool: {
    readonly workers: readonly ShownWorker[];
    readonly restarts: number;
    readonly silentKilled: number;
  },
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
      help: 'Workers that did not answer and were killed and replaced.',
    },
    () => pool.silentKilled,
  );
}
