import { byName, type FamilyRegistry } from '../../telemetry/family-registry.js';
import type { SpanLosses } from '../calls/tracing.js';

const REASONS: Readonly<Record<keyof SpanLosses, string>> = {
  queue: 'too many spans waited for the collector',
  export: 'the collector did not accept the spans in time',
};

/** Exposes the number of lost lines of the decision log and of lost spans. */
export function exposeLosses(registry: FamilyRegistry, lines: () => number, spans: () => SpanLosses): void {
  registry.counter(
    {
      name: 'weir_decision_log_lines_dropped_total',
      help:
        'Lost decision log lines (DECISION_LOG_SAMPLE). If DECISION_LOG_FILE is unset, some lost lines ' +
        'are counted in `weir_log_lines_dropped_total` instead.',
    },
    lines,
  );
  registry.counter(
    {
      name: 'weir_trace_spans_dropped_total',
      help: 'Lost trace spans (TRACING_ENABLED), by reason.',
      labels: { reason: { meaning: 'The reason.', values: REASONS } },
    },
    () => byName('reason', spans()),
  );
}
