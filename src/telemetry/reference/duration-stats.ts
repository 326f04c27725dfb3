import { counted, StatSeries } from './stat-series.js';

/** Maximum number of values in a {@link UniformSample}. */
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

/** All values, or a uniform sample of them. Algorithm R (Vitter, 1985) keeps each value with the same probability. */
export class UniformSample {
  readonly samples: number[] = [];
  /** Number of all values. */
  count = 0;
  readonly #random: () => number;

  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  add(value: number): void {
    const at = this.count++;
    const slot = at < MAX_SAMPLES ? at : Math.floor(this.#random() * this.count);
    if (slot < MAX_SAMPLES) this.samples[slot] = value;
  }
}

const NO_DURATIONS = { samples: [], count: 0 };

/**
 * Number and duration of the calls of a gRPC method. Single values are sampled only after {@link keepSamples}, because
 * only statsd needs them.
 */
export class DurationStats {
  readonly calls: StatSeries;
  readonly name: string;
  readonly #listeners: DurationListener[] = [];
  readonly #random: () => number;
  /** Milliseconds of an interval; undefined if they are not sampled. */
  #sample: UniformSample | undefined;

  constructor(method: string, random: () => number = Math.random) {
    const prefix = prefixOf(method);
    this.calls = new StatSeries(prefix, ['total_requests']);
    this.name = `${prefix}response_time`;
    this.#random = random;
  }

  began(): void {
    this.calls.values[0] = counted(this.calls.values[0] as number, 1);
  }

  ended(micros: number): void {
    const millis = Math.max(0, micros) / 1000;
    for (let i = 0; i < this.#listeners.length; i++) (this.#listeners[i] as DurationListener).observe(millis);
    this.#sample?.add(millis);
  }

  addListener(listener: DurationListener): void {
    this.#listeners.push(listener);
  }

  /** Keeps samples from now on; see {@link takeSamples}. */
  keepSamples(): void {
    this.#sample = new UniformSample(this.#random);
  }

  /** Returns the sampled milliseconds since the previous call. */
  takeSamples(): Pick<UniformSample, 'samples' | 'count'> {
    const taken = this.#sample;
    if (taken === undefined || taken.count === 0) return NO_DURATIONS;
    this.keepSamples();
    return taken;
  }
}
