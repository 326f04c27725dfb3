import type { RunningBucket, TakeSnapshot } from './running-bucket.js';
import type { TakeOutcome } from './take-outcome.js';
import { UNIT_MICROS, type WindowUnit } from './window-unit.js';

/** Largest value of the 32 bit fields of a token bucket. */
export const MAX_UINT32 = 0xffff_ffff;
/**
 * The most that refunds bring a token bucket past full (`TakeItem.over`), as the time that it would take to refill: ten
 * years, so that all sums of times stay below 2^53 µs.
 */
export const MAX_SURPLUS_MICROS = 10 * 365 * UNIT_MICROS.day;
/** How long a token bucket stays past full at most. */
export const SURPLUS_LIFETIME_MICROS = UNIT_MICROS.day;

/** What one item of a request asks of its bucket. */
export interface BucketOperation {
  readonly hits: number;
  /** Gives `hits` back instead. */
  readonly refund: boolean;
  /** See TakeItem. */
  readonly undoMark?: number;
  /** See TakeItem. */
  readonly allowSurplus?: boolean;
}

/**
 * What deciding and answering need of a rate, whichever its algorithm: a token bucket (token-bucket.ts) or a fixed
 * window (fixed-window.ts). Times are those of its own clock, see {@link nowOf}. Buckets change in place.
 */
export interface RateAlgorithm {
  /** Whether it goes by the wall clock, as windows do; else by the monotonic one. */
  readonly byWallClock: boolean;
  /** Of the two clocks the one that the rate goes by. */
  nowOf(tokenMicros: number, windowMicros: number): number;
  /** A take, a peek (0 hits) or a refund. Returns whether it was limited. */
  take(
    bucket: RunningBucket,
    operation: BucketOperation,
    nowMicros: number,
    countDeniedHits: boolean,
  ): boolean;
  /** Usage that already happened: taken down to the deepest debt. Returns the hits beyond, which are forgiven. */
  charge(bucket: RunningBucket, hits: number, nowMicros: number): number;
  /**
   * The request was denied for another item, or this one, and its bucket is as it was before: counts what denied hits
   * count, and notes what is there.
   */
  deny(
    bucket: RunningBucket,
    operation: BucketOperation,
    snapshot: TakeSnapshot,
    nowMicros: number,
    countDeniedHits: boolean,
  ): void;
  /** Brings a bucket that was changed into the form in which it is stored. */
  toStoredForm(bucket: RunningBucket, nowMicros: number): void;
  /** What is reported of `snapshot`. `cached`: see TakeOutcome. */
  outcome(hits: number, snapshot: TakeSnapshot, nowMicros: number, cached?: boolean): TakeOutcome;
  /** Whether hits of denied requests count in its buckets, in a store that counts them (`countDeniedHits`). */
  countsDenied(countDeniedHits: boolean): boolean;
  /** The number to report as the limit: capacity of a bucket, hits of a window. */
  readonly reportedLimit: number;
  /**
   * The unit to report: that of a calendar's window; else the one as long as the window, or as the time an empty bucket
   * needs to fill, if there is one.
   */
  reportedUnit(): WindowUnit | undefined;
  /** Whether {@link periodSeconds} is always the same. */
  readonly hasFixedPeriod: boolean;
  /**
   * Whole seconds, rounded up: the time an empty bucket needs to fill, or the length of the window that holds
   * `wallMicros`.
   */
  periodSeconds(wallMicros: number): number;
  /**
   * The epoch second to report for an instant in seconds of the local wall clock. Windows end on whole seconds of the
   * store's clock, so the nearest is exact as long as the two clocks agree to half a second; a bucket's is rounded up.
   */
  resetSecond(seconds: number): number;
  /** What to report as used of a limit that denies `hits` without its bucket being known. */
  assumedUsed(hits: number): number;
}

/** Fewest hits that are a charge on a rate with such a debt; see isCharge. */
export function minChargeHitsOf(maxDebt: number): number {
  return maxDebt > 0 ? 2 : Number.POSITIVE_INFINITY;
}
