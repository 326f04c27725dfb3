import { Counter } from '@prometheus-io/client';
import type { FamilyRegistry } from '../../telemetry/family-registry.js';

/** Makes a metric of how many lines of the sampled decision log are `dropped`, whenever metrics are asked for. */
export function exposeDecisionLog(registry: FamilyRegistry, dropped: () => number): void {
  new Counter({
    name: 'weir_decision_log_lines_dropped_total',
    help:
      'Lines of the sampled decision log (DECISION_LOG_SAMPLE) that were lost, because nobody read them or they ' +
      'could not be written; with DECISION_LOG_FILE unset `weir_log_lines_dropped_total` has most of them.',
    registers: [registry.client],
    collect() {
      this.reset();
      this.inc(dropped());
    },
  });
}
