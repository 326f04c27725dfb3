import { byName, type FamilyRegistry } from '../../telemetry/family-registry.js';
import type { SpanLosses } from '../calls/call-trace.js';

const REASONS: Readonly<Record<keyof SpanLosses, string>> = {
  queue: 'too many waited for the collector',
  export: 'the collector did not take them, or not in time',
};

/** Shows how many lines of the sampled decision log and how many spans of traces were lost. */
export function exposeLosses(registry: FamilyRegistry, lines: () => number, spans: () => SpanLosses): void {
  registry.counter(
    {
      name: 'weir_decision_log_lines_dropped_total',
      help:
        'Lines of the sampled decision log (DECISION_LOG_SAMPLE) that were lost, because nobody read them or they ' +
        'could not be written; with DECISION_LOG_FILE unset `weir_log_lines_dropped_total` has most of them.',
    },
    lines,
  );
  registry.counter(
    {
      name: 'weir_trace_spans_dropped_total',
      help: 'Spans of traces (TRACING_ENABLED) that were lost, by reason.',
      labels: { reason: { meaning: 'Why they were lost.', values: REASONS } },
    },
    () => byName('reason', spans()),
  );
}
