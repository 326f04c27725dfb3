/** Numbers of the bucket store in memory, read when metrics are scraped. */
export interface MemoryStats {
  readonly size: number;
  readonly bytes: number;
  readonly evictions: number;
}

/** Numbers of the deny cache in front of Redis, read when metrics are scraped. */
export interface DenyCacheStats {
  /** Requests answered from it. */
  readonly answers: number;
  /** Denials kept now. */
  readonly entries: number;
}

export interface MetricsOptions {
  /** Most series by rule, and as many again by names that callers choose; the rest counts under `other`. */
  readonly maxSeries: number;
  /** weir's version. */
  readonly version: string;
  /** The memory in use for buckets, the local fallback included. */
  readonly memoryStats: () => MemoryStats;
  /** Absent where no requests are decided. */
  readonly denyCacheStats?: () => DenyCacheStats;
  /** NEAR_LIMIT_RATIO. Absent, as the next one, where no requests are decided: nothing is counted by it then. */
  readonly nearLimitRatio?: number;
  /** Whether windows count the hits of denied requests. */
  readonly deniedHitsCount?: boolean;
}
