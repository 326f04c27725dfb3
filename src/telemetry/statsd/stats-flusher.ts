import type { ReferenceStats } from '../reference/reference-stats.js';
import type { StatsSink } from './stats-sink.js';

export interface StatsFlusherOptions {
  readonly stats: ReferenceStats;
  readonly sinks: readonly StatsSink[];
  /** STATS_FLUSH_INTERVAL. */
  readonly intervalMs: number;
}

/** Sends the increases of counters, the gauges and the durations to sinks, once per interval. */
export class StatsFlusher {
  readonly #options: StatsFlusherOptions;
  readonly #timer: NodeJS.Timeout;

  constructor(options: StatsFlusherOptions) {
    this.#options = options;
    options.stats.followDurations((durations) => durations.keepSamples());
    this.#timer = setInterval(() => this.flush(), options.intervalMs).unref();
  }

  /** Passes all statistics to the sinks now. The sinks send them asynchronously. */
  flush(): void {
    const { stats, sinks } = this.#options;
    const sendDelta = (name: string, delta: number): void => {
      for (const sink of sinks) sink.counter(name, delta);
    };
    for (const series of stats.takeChanged()) series.takeDeltas(sendDelta);
    for (const [name, value] of stats.gauges()) for (const sink of sinks) sink.gauge(name, value);
    for (const durations of stats.allDurations()) {
      const { samples, count } = durations.takeSamples();
      const rate = samples.length / count;
      for (const millis of samples) for (const sink of sinks) sink.timer(durations.name, millis, rate);
    }
    for (const sink of sinks) sink.flush();
  }

  /** Passes the remaining statistics to the sinks, and closes them. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.flush();
    await Promise.all(this.#options.sinks.map((sink) => sink.close()));
  }
}
