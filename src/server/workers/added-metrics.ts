import { AggregatorRegistry } from 'prom-client';
import type { MetricsJson } from './messages.js';

/** Gauges tell of a process that lives; what counts up must not fall when a process ends. */
function counting(metrics: MetricsJson): MetricsJson {
  return metrics.filter(({ type }) => String(type) === 'counter' || String(type) === 'histogram');
}

/** Adds up the metrics of several processes, those that have ended included. */
export class AddedMetrics {
  #ended: MetricsJson = [];
  /** Ended processes that are not in the sum yet: several may end at once, and adding up takes turns of the event loop. */
  #ending: MetricsJson[] = [];
  #adding: Promise<void> | undefined;

  /** Keeps what an ended process had counted when it was last asked. */
  keep(last: MetricsJson): Promise<void> {
    this.#ending.push(counting(last));
    this.#adding ??= this.#add().finally(() => {
      this.#adding = undefined;
    });
    return this.#adding;
  }

  /** The sum in Prometheus' text format. The first of `processes` gives names and help texts. */
  text(processes: readonly MetricsJson[]): Promise<string> {
    return sumOf([...processes, this.#ended, ...this.#ending]).metrics();
  }

  async #add(): Promise<void> {
    while (this.#ending.length > 0) {
      const added = [...this.#ending];
      const ended = await sumOf([this.#ended, ...added]).getMetricsAsJSON();
      this.#ended = ended;
      this.#ending = this.#ending.slice(added.length);
    }
  }
}

function sumOf(processes: readonly MetricsJson[]): ReturnType<typeof AggregatorRegistry.aggregate> {
  return AggregatorRegistry.aggregate(processes.map((one) => [...one]));
}
