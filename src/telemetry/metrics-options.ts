/** Statistics of the store in memory, read at each scrape. */
export interface MemoryStats {
  readonly size: number;
  readonly bytes: number;
  readonly evictions: number;
  readonly holdCount: number;
  readonly refusedHolds: number;
}

/** Statistics of the deny cache in front of Redis, read at each scrape. */
export interface DenyCacheStats {
  /** Requests that the cache answered. */
  readonly answers: number;
  /** Denials in the cache. */
  readonly entries: number;
}

export interface MetricsOptions {
  /**
   * Maximum number of series for rules, and also of series whose names depend on requests. Further series count as
   * `other`.
   */
  readonly maxSeries: number;
  /** Version of weir. */
  readonly version: string;
  /** Returns the memory of buckets, including local buckets. */
  readonly memoryStats: () => MemoryStats;
  /** Undefined in a process that decides no requests. */
  readonly denyCacheStats?: () => DenyCacheStats;
  /** NEAR_LIMIT_RATIO. This and the next option are undefined in a process that decides no requests. */
  readonly nearLimitRatio?: number;
  /** Whether windows count the hits of denied requests. */
  readonly deniedHitsCount?: boolean;
}
