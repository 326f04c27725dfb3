import { counted, StatSeries } from './stat-series.js';

/** Most times of one interval that sinks of single values are sent; a fair sample of more. */
export const MAX_SAMPLES = 1000;

/** What is told of the calls of a gRPC method. */
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

/** Told of each duration, in milliseconds. */
export interface DurationListener {
  observe(millis: number): void;
}

/** Durations of an interval: all of them, or a uniform sample. */
export interface SampledDurations {
  /** Milliseconds. */
  readonly samples: readonly number[];
  /** How many there were. */
  readonly count: number;
}

const NO_DURATIONS: SampledDurations = { samples: [], count: 0 };

/**
 * Calls of one gRPC method: how many, and how long they took. Keeps a sample of single values only once somebody asks
 * for it, as statsd wants single values and nobody else does.
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

  /** Counts a call that began. */
  began(): void {
    this.calls.values[0] = counted(this.calls.values[0] as number, 1);
  }

  /** A call ended after so many microseconds. */
  ended(micros: number): void {
    const millis = Math.max(0, micros) / 1000;
    for (let i = 0; i < this.#listeners.length; i++) (this.#listeners[i] as DurationListener).observe(millis);
    if (this.#keepsSamples) this.#sample(millis);
  }

  addListener(listener: DurationListener): void {
    this.#listeners.push(listener);
  }

  /** From now on {@link takeSamples} gives single values. */
  keepSamples(): void {
    this.#keepsSamples = true;
  }

  /** What was sampled since the last time. */
  takeSamples(): SampledDurations {
    if (this.#count === 0) return NO_DURATIONS;
    const taken = { samples: this.#samples, count: this.#count };
    this.#samples = [];
    this.#count = 0;
    return taken;
  }

  /** Algorithm R (Vitter, 1985): every value is in the sample with the same probability. */
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
