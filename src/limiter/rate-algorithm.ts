import { invariant } from '../runtime/invariant.js';
import type { HoldEffect } from './holds/hold.js';
import type { RunningBucket, TakeSnapshot } from './running-bucket.js';
import { UNIT_MICROS, type WindowUnit } from './window-unit.js';

/** Maximum value of the 32-bit fields of a token bucket. */
export const MAX_UINT32 = 0xffff_ffff;
/**
 * Maximum time a bucket may need to fill, in microseconds. Keeps `now + time to fill` below 2^53 µs, with two centuries
 * to spare.
 */
export const MAX_FILL_MICROS = 100 * 365 * UNIT_MICROS.day;

/** The operation that one item of a request applies to its bucket: a take, a peek, a charge or a refund. */
export interface BucketOperation {
  readonly hits: number;
  /** Gives `hits` back instead of taking them. */
  readonly refund: boolean;
  /** See Take. */
  readonly undoAtMicros?: number;
  /**
   * For a refund that settles a hold of a token bucket: the time at which the bucket would have been full if only the
   * use had been deducted. By default, `undoAtMicros` is that time.
   */
  readonly fullAtMicros?: number;
  /** For such a refund: the time that the bucket gets back. By default, the time in which `hits` refill. */
  readonly refundMicros?: number;
  /** See Take. */
  readonly enforcement?: Enforcement;
}

/** On which terms a process may take tokens or hits in advance, to spend them without calls; see storage/leases.ts. */
export interface LeaseTerms {
  /** Time after which unspent tokens of a lease lapse, in microseconds. */
  readonly forMicros: number;
  /** Maximum number of tokens of a lease. */
  readonly max: number;
}

/** Hits on a bucket during `forMicros` below which a process asks for no lease. */
export const MIN_LEASED_HITS = 4;

/**
 * The operations that deciding and answering need from a rate. Token buckets (token-bucket.ts), fixed windows
 * (fixed-window.ts) and limits on concurrent requests (holds/concurrency.ts) implement them. Times are on the clock of
 * the rate, see {@link nowOf}. Buckets are changed in place.
 */
export interface RateAlgorithm {
  /** Whether the rate uses the wall clock, as windows do. Token buckets use the monotonic clock. */
  readonly byWallClock: boolean;
  /** Undefined for a rate whose tokens are never taken in advance. */
  readonly lease: LeaseTerms | undefined;
  /** Returns the time on the clock that the rate uses. */
  nowOf(tokenMicros: number, windowMicros: number): number;
  /** Applies a take, a peek (0 hits) or a refund. Returns whether it was limited. */
  take(
    bucket: RunningBucket,
    operation: BucketOperation,
    nowMicros: number,
    countDeniedHits: boolean,
  ): boolean;
  /**
   * Charges usage that already happened, down to the maximum debt. Returns the hits beyond the maximum, which are
   * forgiven. With `undoAtMicros`, a window that started after that time is not charged.
   */
  charge(bucket: RunningBucket, hits: number, nowMicros: number, undoAtMicros?: number): number;
  /**
   * Handles one item of a denied request, after its bucket was restored to the state before the request. Counts denied
   * hits if this rate counts them, and records the resulting state.
   */
  deny(
    bucket: RunningBucket,
    operation: BucketOperation,
    snapshot: TakeSnapshot,
    nowMicros: number,
    countDeniedHits: boolean,
  ): void;
  /** Returns the `Take.undoAtMicros` that undoes a take at `takenMicros`, which is a time on the clock of the rate. */
  undoMicrosOf(takenMicros: number): number;
  /** Converts a changed bucket to the form in which it is stored. */
  toStoredForm(bucket: RunningBucket, nowMicros: number): void;
  /** Returns the outcome to report for `snapshot`. For `cached`, see TakeOutcome. */
  outcome(hits: number, snapshot: TakeSnapshot, nowMicros: number, cached?: boolean): TakeOutcome;
  /**
   * Returns whether this rate counts the hits of denied requests, given the setting `countDeniedHits` of the store.
   */
  countsDenied(countDeniedHits: boolean): boolean;
  /** The limit to report: the capacity of a bucket, or the hits of a window. */
  readonly reportedLimit: number;
  /**
   * The unit to report: the unit of a calendar window, or the unit that is as long as the window or as the time
   * an empty bucket needs to fill. Undefined if there is no such unit.
   */
  readonly reportedUnit: WindowUnit | undefined;
  /** Whether {@link periodSeconds} is constant. */
  readonly hasFixedPeriod: boolean;
  /**
   * Returns the time an empty bucket needs to fill, or the length of the window that contains `wallMicros`, in whole
   * seconds, rounded up.
   */
  periodSeconds(wallMicros: number): number;
  /**
   * Converts an instant in seconds of the local wall clock to the epoch second to report. Windows end on whole seconds
   * of the store's clock, so rounding to the nearest second is exact while the two clocks differ by less than half a
   * second. The reset time of a token bucket is rounded up.
   */
  resetSecond(seconds: number): number;
  /** Returns the used hits to report if the limit denies `hits` and the state of its bucket is unknown. */
  assumedUsed(hits: number): number;
}

/**
 * Checks the numbers of a rate: `count` is an integer >= `least`. Decisions would otherwise compare with NaN, which
 * allows every request, or loop forever.
 */
export function expectCount(count: number, least: number, what: string): void {
  invariant(Number.isSafeInteger(count) && count >= least, `${what} is an integer of at least ${least}`);
}

/** Checks the numbers of a debt; see {@link expectCount}. */
export function expectDebt(maxDebt: number, minChargeHits: number): void {
  expectCount(maxDebt, 0, 'the maximum debt of a rate');
  if (minChargeHits !== Number.POSITIVE_INFINITY)
    expectCount(minChargeHits, 1, 'the smallest charge of a rate');
}

/** Returns the smallest number of hits that is a charge for a rate with this maximum debt; see isCharge. */
export function minChargeHitsOf(maxDebt: number): number {
  return maxDebt > 0 ? 2 : Number.POSITIVE_INFINITY;
}

/** The result of several equal takes of one item (`Take.count`). */
export interface Grant {
  /** Number of takes that were allowed, which are the first ones. */
  readonly granted: number;
  /** The state of the bucket that the first take found, as in RunningBucket, and the store's time. */
  readonly wholeMicros: number;
  readonly remainder: number;
  readonly nowMicros: number;
}

/** The outcome of one Take of a request. */
export interface TakeOutcome {
  /** Whether the hits did not fit. */
  readonly overLimit: boolean;
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
   * The value that a refund needs to undo this take, see `Take.undoAtMicros`: microseconds on the store's clock. For a
   * window: its start. For a token bucket: the time at which it would be full without this take, rounded down, or, for
   * a bucket with debt, the time of the take. Caches do not report it.
   */
  readonly undoAtMicros?: number | undefined;
  /**
   * The used amount, for metrics: hits counted in the window after this item was applied, including those above the
   * limit, or the tokens missing from a bucket. {@link remaining} alone does not determine it. For a settlement of
   * slots, both are 0, because a store need not count the slots in use for it.
   */
  readonly used: number;
  /** Hits of a charge beyond `max_debt`, which are forgiven. */
  readonly uncollectedHits: number;
  /**
   * The time of the decision on Redis's clock, in microseconds since 1970. Of the items that a Redis decides together,
   * only the first has it. Absent for buckets in memory, cached denials, and without a decision log.
   */
  decidedMicros?: number;
  /** Effect of the item on its hold; absent if the item has no hold, or has placed none. */
  readonly hold?: HoldEffect;
  /**
   * If the item placed a hold in a token bucket: the time at which the bucket would be full without the hold, in
   * microseconds on the store's clock. 0 for other rates.
   */
  readonly fullAtMicros?: number;
  /**
   * If the item placed a hold in a token bucket: the time in which the hits of the hold refill, in whole microseconds,
   * at least 1. 0 for other rates.
   */
  readonly refillMicros?: number;
  /** If the item settled the oldest hold of its bucket: the hits of that hold. */
  readonly heldHits?: number;
  /** For an item with `Take.count`: what was taken. */
  readonly grant?: Grant;
  /** Whether the denial comes from a cache, so that the store was not called. */
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

/**
 * Effect of a limited item on the request:
 * - `enforce`: the request is denied.
 * - `observe`: the request is never denied by this item (monitoring, grace period, shadow mode).
 * - `quota`: the request is denied only if all its `quota` items are limited.
 * - `spill`: the item never denies. If it is limited, the next item applies instead. Otherwise, the next item is
 *   skipped, see `isSkipped`. A peek is limited if there is no room for one hit, also in a window. The last item of
 *   such a chain has another enforcement, which applies to the whole chain.
 */
export type Enforcement = 'enforce' | 'observe' | 'quota' | 'spill';
