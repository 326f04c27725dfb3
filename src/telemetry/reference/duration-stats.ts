import { counted, StatSeries } from './stat-series.js';

/** Maximum number of durations per interval for sinks that send single values. Further ones are sampled uniformly. */
export const MAX_SAMPLES = 1000;

/** Describes the statistics of the calls of a gRPC method. */
export function describeDurations(method: string) {
  const prefix = prefixOf(method);
  return [
    { name: `${prefix}total_requests`, type: 'counter', meaning: 'Calls of a gRPC method.' },
    { name: `${prefix}response_time`, type: 'timer', meaning: 'Duration of the calls, in milliseconds.' },
  ] as const;
}

function prefixOf(method: string): string {
  return `ratelimit_server.${method}.`;
}

/** Called with each duration, in milliseconds. */
export interface DurationListener {
  observe(millis: number): void;
}

/** Durations of an interval: all of them, or a uniform sample. */
export interface SampledDurations {
  /** Milliseconds. */
  readonly samples: readonly number[];
  /** Number of all durations. */
  readonly count: number;
}

const NO_DURATIONS: SampledDurations = { samples: [], count: 0 };

/**
 * Number and duration of the calls of a gRPC method. Single values are sampled only after {@link keepSamples}, because
 * only statsd needs them.
 */
export class DurationStats {
  readonly calls: StatSeries;
  /** Name of the timer. */
  readonly name: string;
  readonly #listeners: DurationListener[] = [];
  readonly #random: () => number;
  #keepsSamples = false;
  #samples: number[] = [];
  #count = 0;

  constructor(method: string, random: () => number = Math.random) {
    const prefix = prefixOf(method);
    this.calls = new StatSeries(prefix, ['total_requests']);
    this.name = `${prefix}response_time`;
    this.#random = random;
  }

  /** Counts the start of a call. */
  began(): void {
    this.calls.values[0] = counted(this.calls.values[0] as number, 1);
  }

  /** Counts the end of a call, with its microseconds. */
  ended(micros: number): void {
    const millis = Math.max(0, micros) / 1000;
    for (let i = 0; i < this.#listeners.length; i++) (this.#listeners[i] as DurationListener).observe(millis);
    if (this.#keepsSamples) this.#sample(millis);
  }

  addListener(listener: DurationListener): void {
    this.#listeners.push(listener);
  }

  /** Keeps samples from now on; see {@link takeSamples}. */
  keepSamples(): void {
    this.#keepsSamples = true;
  }

  /** Returns the samples since the previous call. */
  takeSamples(): SampledDurations {
    if (this.#count === 0) return NO_DURATIONS;
    const taken = { samples: this.#samples, count: this.#count };
    this.#samples = [];
    this.#count = 0;
    return taken;
  }

  /** Adds a value to the sample. Algorithm R (Vitter, 1985) keeps each value with the same probability. */
  #sample(millis: number): void {
    const at = this.#count++;
    if (at < MAX_SAMPLES) {
      this.#samples.push(millis);
      return;
    }
    const slot = Math.floor(this.#random() * this.#count);
    if (slot < MAX_SAMPLES) this.#samples[slot] = millis;
  }
}
