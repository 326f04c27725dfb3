/** What one run of load gave, whoever made the load. */
export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  /** From sending a request, at a fixed rate from when it should have been sent, to its whole answer. */
  readonly p50Micros: number;
  readonly p99Micros: number;
  readonly p999Micros: number;
  readonly maxMicros: number;
  /** CPU time of the load generator, all requests together. */
  readonly clientMicros: number;
  /** Answers by overall code; undefined where the generator does not look into answers. */
  readonly overLimit: number | undefined;
}

/** Percentiles of latencies in microseconds, in any order; sorts them in place. */
export function percentiles(latencies: Float64Array) {
  latencies.sort();
  const at = (share: number) =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0;
  return { p50Micros: at(0.5), p99Micros: at(0.99), p999Micros: at(0.999), maxMicros: at(1) };
}
