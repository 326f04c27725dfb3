/** What became of one TakeItem of a request. */
export interface TakeOutcome {
  /** Whether the hits did not fit. */
  readonly limited: boolean;
  /**
   * Whole tokens left, or hits left in the window, once this item was applied; of a bucket named twice, what each
   * found. A limited item reports what it found, but 0 for a window outside a list of limits; any other item of a
   * denied request what is there with nothing taken.
   */
  readonly remaining: number;
  /**
   * Microseconds, never negative. Limited: until these very hits would pass (hits above capacity: until the bucket is
   * full). Otherwise: until one more whole token is there, 0 for a full bucket. A window: until it ends.
   */
  readonly waitMicros: number;
  /**
   * What a refund must know that undoes this take, see `TakeItem.undoMark`: microseconds on the store's clock. When the
   * window that was asked began; when the token bucket is full had this item taken nothing, rounded down; for one with
   * debt when it was asked. Caches tell none.
   */
  readonly undoMark?: number | undefined;
  /**
   * What {@link remaining} leaves open for metrics: hits counted in the window once this item was applied, over its
   * limit, too; tokens that are gone from a bucket.
   */
  readonly used: number;
  /** Hits of a charge past what a rule with `max_debt` takes on: they were forgiven. */
  readonly forgiven: number;
  /** Whether the store was not asked: a denial that was remembered. */
  readonly cached: boolean;
  /**
   * Hits that several items of the request ask of this bucket together, where that is more than it ever holds, so that
   * they can never pass; absent for all others. Not of the store: see service/shared-bucket.ts.
   */
  readonly combinedHits?: number;
  /** True where nobody has looked at the bucket: the store could not decide, and `on_store_failure` denied. */
  readonly bucketUnknown?: true;
}
