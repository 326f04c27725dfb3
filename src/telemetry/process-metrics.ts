import { collectDefaultMetrics, Registry } from '@prometheus-io/client';
import type { FamilyRegistry } from './family-registry.js';

/** Metrics of the Prometheus client that weir does not expose. */
const UNUSED_METRICS = [
  // Gauges with names of counters. `nodejs_active_resources`, `_handles` and `_requests` expose the same by type.
  'nodejs_active_resources_total',
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  // A timer measures these, which would wake an idle process ten times a second.
  'nodejs_eventloop_utilization_summary',
  'nodejs_eventloop_utilization_histogram',
];
/** Maximum duration of a timer, in milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Exposes `process_*` and `nodejs_*`: resources of the process, the event loop and the garbage collector. */
export function exposeProcess(registry: FamilyRegistry): void {
  const client = new Registry();
  collectDefaultMetrics({ register: client, eventLoopUtilizationTimeout: MAX_TIMER_MS });
  for (const name of UNUSED_METRICS) client.removeSingleMetric(name);
  registry.addClient(client);
}
