import { Gauge } from '@prometheus-io/client';
import type { FamilyRegistry } from '../../telemetry/family-registry.js';

/** Makes a gauge of whether this server should get requests, as `/healthcheck` says, whenever metrics are asked for. */
export function exposeServing(registry: FamilyRegistry, isServing: () => boolean): void {
  new Gauge({
    name: 'weir_serving',
    help: '1 when this server should get requests, 0 when it should not: /healthcheck says why.',
    registers: [registry.client],
    collect() {
      this.set(isServing() ? 1 : 0);
    },
  });
}
