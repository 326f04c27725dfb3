import { Counter } from '@prometheus-io/client';
import type { FamilyRegistry } from '../../telemetry/family-registry.js';
import type { SpanLosses } from '../calls/call-trace.js';

const REASONS: Readonly<Record<keyof SpanLosses, string>> = {
  queue: 'too many waited for the collector',
  export: 'the collector did not take them, or not in time',
};

/** Makes a metric of the spans that were `lost`, whenever metrics are asked for. */
export function exposeSpanLosses(registry: FamilyRegistry, lost: () => SpanLosses): void {
  const name = 'weir_trace_spans_dropped_total';
  new Counter({
    name,
    help: 'Spans of traces (TRACING_ENABLED) that were lost, by reason.',
    labelNames: registry.labels(name, { reason: { meaning: 'Why they were lost.', values: REASONS } }),
    registers: [registry.client],
    collect() {
      this.reset();
      for (const [reason, count] of Object.entries(lost())) this.inc({ reason }, count);
    },
  });
}
