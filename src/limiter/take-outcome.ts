import type { HoldEffect } from './holds/hold.js';

/** The outcome of one TakeItem of a request. */
export interface TakeOutcome {
  /** Whether the hits did not fit. */
  readonly limited: boolean;
  /**
   * Whole tokens in the bucket, or hits left in the window, after this item was applied. If the request names a bucket
   * twice, each item reports its own result. A limited item reports the state that it found, but 0 for a window outside
   * a list of limits. Any other item of a denied request reports the state with nothing taken.
   */
  readonly remaining: number;
  /**
   * Wait time in microseconds, never negative. For a limited item: until the same hits would fit, or, for hits above
   * the capacity, until the bucket is full. Otherwise: until the bucket has one more whole token, or 0 for a full
   * bucket. For a window: until it ends. For a limit on concurrent requests without a free slot: Infinity.
   */
  readonly waitMicros: number;
  /**
   * The value that a refund needs to undo this take, see `TakeItem.undoMark`: microseconds on the store's clock. For a
   * window: its start. For a token bucket: the time at which it would be full without this take, rounded down, or, for
   * a bucket with debt, the time of the take. Caches do not report it.
   */
  readonly undoMark?: number | undefined;
  /**
   * The used amount, for metrics: hits counted in the window after this item was applied, including those above the
   * limit, or the tokens missing from a bucket. {@link remaining} alone does not determine it. For a settlement of
   * slots, both are 0, because a store need not count the slots in use for it.
   */
  readonly used: number;
  /** Hits of a charge beyond `max_debt`, which are forgiven. */
  readonly forgiven: number;
  /** Effect of the item on its hold; absent if it has none, or if the take placed none. */
  readonly hold?: HoldEffect;
  /**
   * For a take from a token bucket that placed a hold: the time at which the bucket would be full without the take, in
   * microseconds on the store's clock. 0 for other rates.
   */
  readonly fullMicros?: number;
  /**
   * For a take from a token bucket that placed a hold: the time in which its hits refill, in whole microseconds, at
   * least 1. 0 for other rates.
   */
  readonly costMicros?: number;
  /** For an item that settled the oldest hold of its bucket: the hits of that hold. */
  readonly heldHits?: number;
  /** Whether a cached denial was used and the store was not asked. */
  readonly cached: boolean;
  /**
   * Total hits that several items of the request take from this bucket, if the total exceeds what the bucket can ever
   * hold, so that the request can never be allowed. Absent otherwise. Set by service/shared-bucket.ts, not by the
   * store.
   */
  readonly combinedHits?: number;
  /**
   * True if the state of the bucket is unknown: the store was unavailable and `on_store_failure` denied the request.
   */
  readonly bucketUnknown?: true;
}
