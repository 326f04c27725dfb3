import { Gauge } from '@prometheus-io/client';
import type { ControlIndex } from '../../service/controls/control-index.js';
import type { FamilyRegistry } from '../../telemetry/family-registry.js';
import { CONTROL_KIND } from '../../telemetry/label-meanings.js';

/** Makes a gauge of how many blocks and exemptions are in force; all workers know the same ones. */
export function exposeControls(registry: FamilyRegistry, index: Pick<ControlIndex, 'count'>): void {
  const name = 'weir_controls';
  new Gauge({
    name,
    help: 'Blocks and exemptions in force, which operators make, by kind.',
    labelNames: registry.labels(name, { kind: CONTROL_KIND }),
    aggregator: 'max',
    registers: [registry.client],
    collect() {
      for (const kind of ['block', 'allow'] as const) this.set({ kind }, index.count(kind));
    },
  });
}
