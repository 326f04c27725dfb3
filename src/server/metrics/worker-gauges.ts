import { Counter, Gauge } from 'prom-client';
import type { FamilyRegistry } from '../../telemetry/family-registry.js';

/** Shows the worker processes of a primary one whenever metrics are asked for. */
export function exposeWorkers(
  registry: FamilyRegistry,
  pool: { readonly workers: readonly unknown[]; readonly restarts: number },
): void {
  const registers = [registry];
  new Gauge({
    name: 'weir_workers',
    help: 'Worker processes that are alive.',
    registers,
    collect() {
      this.set(pool.workers.length);
    },
  });
  new Counter({
    name: 'weir_worker_restarts_total',
    help: 'Worker processes that ended unasked and were replaced.',
    registers,
    collect() {
      this.reset();
      this.inc(pool.restarts);
    },
  });
}
