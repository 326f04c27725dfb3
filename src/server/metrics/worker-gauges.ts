import { Counter, Gauge } from '@prometheus-io/client';
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

/** Shows the worker processes of a primary one whenever metrics are asked for. */
export function exposeWorkers(
  registry: FamilyRegistry,
  pool: {
    readonly workers: readonly ShownWorker[];
    readonly restarts: number;
    readonly silentKilled: number;
  },
): void {
  const registers = [registry.client];
  new Gauge({
    name: 'weir_workers',
    help: 'Worker processes that are alive.',
    registers,
    collect() {
      this.set(pool.workers.length);
    },
  });
  const states = Object.keys(WORKER_STATES) as (keyof typeof WORKER_STATES)[];
  const stateMetric = 'weir_worker_states';
  new Gauge({
    name: stateMetric,
    help: 'Worker processes that are alive, by how they stand.',
    labelNames: registry.labels(stateMetric, { state: WORKER_STATE }),
    registers,
    collect() {
      for (const state of states) {
        this.set({ state }, pool.workers.filter((worker) => workerState(worker) === state).length);
      }
    },
  });
  counter(
    registry,
    'weir_worker_restarts_total',
    'Worker processes that ended unasked and were replaced.',
    () => pool.restarts,
  );
  counter(
    registry,
    'weir_silent_workers_killed_total',
    'Worker processes that did not answer and were killed, to be replaced.',
    () => pool.silentKilled,
  );
}

function counter(registry: FamilyRegistry, name: string, help: string, value: () => number): void {
  new Counter({
    name,
    help,
    registers: [registry.client],
    collect() {
      this.reset();
      this.inc(value());
    },
  });
}
