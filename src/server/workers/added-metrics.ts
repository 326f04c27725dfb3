import { AggregatorRegistry } from 'prom-client';
import type { MetricsJson } from './messages.js';

/** Gauges tell of a process that lives; what counts up must not fall when a process ends. */
function counting(metrics: MetricsJson): MetricsJson {
  return metrics.filter(({ type }) => String(type) === 'counter' || String(type) === 'histogram');
}

/** Adds up the metrics of several processes, those that have ended included. */
export class AddedMetrics {
  #ended: MetricsJson = [];

  /** Keeps what an ended process had counted when it was last asked. */
  async keep(last: MetricsJson): Promise<void> {
    const sum = AggregatorRegistry.aggregate([[...this.#ended], [...counting(last)]]);
    this.#ended = await sum.getMetricsAsJSON();
  }

  /** The sum in Prometheus' text format. The first of `processes` gives names and help texts. */
  text(processes: readonly MetricsJson[]): Promise<string> {
    return AggregatorRegistry.aggregate([...processes, this.#ended].map((one) => [...one])).metrics();
  }
}
