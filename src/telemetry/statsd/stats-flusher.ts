import type { ReferenceStats } from '../reference/reference-stats.js';
import type { StatsSink } from './stats-sink.js';

/** Number of series or durations that are sent in one slice. */
const SLICE = 16;

export interface StatsFlusherOptions {
  readonly stats: ReferenceStats;
  readonly sinks: readonly StatsSink[];
  /** STATS_FLUSH_INTERVAL. */
  readonly intervalMs: number;
  /** Runs steps of far less than a millisecond, with decisions between them. */
  inSlices(steps: Generator<''>): Promise<void>;
}

/** Sends the increases of counters, the gauges and the durations to sinks, once per interval. */
export class StatsFlusher {
  readonly #options: StatsFlusherOptions;
  readonly #timer: NodeJS.Timeout;
  #flushing: Promise<void> | undefined;

  constructor(options: StatsFlusherOptions) {
    this.#options = options;
    options.stats.followDurations((durations) => durations.keepSamples());
    this.#timer = setInterval(() => void this.flush(), options.intervalMs).unref();
  }

  /** Passes all statistics to the sinks now. The sinks send them asynchronously. */
  flush(): Promise<void> {
    this.#flushing ??= this.#sendAll().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Passes the remaining statistics to the sinks, and closes them. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#flushing;
    await this.flush();
    await Promise.all(this.#options.sinks.map((sink) => sink.close()));
  }

  #sendAll(): Promise<void> {
    return this.#options.inSlices(this.#steps());
  }

  *#steps(): Generator<''> {
    const { stats, sinks } = this.#options;
    const sendDelta = (name: string, delta: number): void => {
      for (const sink of sinks) sink.counter(name, delta);
    };
    let sent = 0;
    for (const series of stats.takeChanged()) {
      series.takeDeltas(sendDelta);
      if (++sent % SLICE !== 0) continue;
      for (const sink of sinks) sink.flush();
      yield '';
    }
    for (const [name, value] of stats.gauges()) for (const sink of sinks) sink.gauge(name, value);
    for (const durations of stats.allDurations()) {
      const { samples, count } = durations.takeSamples();
      const rate = samples.length / count;
      for (const millis of samples) {
        for (const sink of sinks) sink.timer(durations.name, millis, rate);
        if (++sent % SLICE === 0) yield '';
      }
    }
    for (const sink of sinks) sink.flush();
  }
}
