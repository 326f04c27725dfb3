/** Results of a round, from any load generator. */
export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  /** Time from sending a request to its complete answer. At a fixed rate, the time starts when the request was due. */
  readonly p50Micros: number;
  readonly p99Micros: number;
  readonly p999Micros: number;
  readonly maxMicros: number;
  /** CPU time of the load generator for all requests. */
  readonly clientMicros: number;
  /** Number of OVER_LIMIT answers; undefined if the generator does not decode answers. */
  readonly overLimit: number | undefined;
}

/** Returns percentiles of latencies, which may have any order. Sorts the latencies in place. */
export function percentiles(latencies: Float64Array) {
  latencies.sort();
  const at = (share: number) =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0;
  return { p50Micros: at(0.5), p99Micros: at(0.99), p999Micros: at(0.999), maxMicros: at(1) };
}
