import { invariant } from '../runtime/invariant.js';
import { CalendarWindows, isCalendarUnit } from './calendar.js';
import {
  type BucketOperation,
  expectCount,
  expectDebt,
  type LeaseTerms,
  MAX_UINT32,
  minChargeHitsOf,
  type RateAlgorithm,
  type TakeOutcome,
} from './rate-algorithm.js';
import type { RunningBucket, TakeSnapshot } from './running-bucket.js';
import { UNIT_MICROS, WINDOW_UNITS, type WindowUnit } from './window-unit.js';

/** Maximum number of hits that a window counts; larger counts saturate. */
export const MAX_COUNT = Number.MAX_SAFE_INTEGER;

const COUNT = "counting hits never lowers a window's count";

/** Options of a window that differs from one plain unit. */
export interface WindowOptions {
  /** Number of units in a window, an integer >= 1. Default: 1. */
  readonly multiplier?: number;
  /** IANA name of the time zone whose days, weeks, months or years are the windows; see {@link CalendarWindows}. */
  readonly timeZone?: string | undefined;
  /** See {@link WindowRate.maxDebt}. Default: 0. */
  readonly maxDebt?: number;
  /** See {@link WindowRate.minChargeHits}. The default depends on the debt. */
  readonly minChargeHits?: number;
  /** See {@link WindowRate.countsOnlyAllowed}. Default: false. */
  readonly countsOnlyAllowed?: boolean;
  readonly lease?: LeaseTerms | undefined;
}

/**
 * A fixed window: at most `requestsPerUnit` hits in each window. Windows are aligned to the epoch and `lengthMicros`
 * long, or, with `calendar`, the days, weeks, months or years of a time zone. The state is the start of the window and
 * the hits counted; see {@link RunningBucket}.
 */
export class WindowRate implements RateAlgorithm {
  readonly kind = 'window' as const;
  readonly byWallClock = true;
  readonly unit: WindowUnit;
  /** Number of units in a window (`unit_multiplier`). Always 1 with a calendar. */
  readonly multiplier: number;
  readonly requestsPerUnit: number;
  /** Length of a window in microseconds. Calendar windows vary in length, so this is their nominal length. */
  readonly lengthMicros: number;
  readonly reportedUnit: WindowUnit | undefined;
  readonly calendar: CalendarWindows | undefined;
  /**
   * Never counts the hits of a denied request, whatever `countDeniedHits` says. Set for a limit in a list of limits,
   * which is decided all or nothing, for a limit with holds, and for a limit with leases, whose processes deny requests
   * alone.
   */
  readonly countsOnlyAllowed: boolean;
  /**
   * Maximum number of hits that charges may count above the limit, from 0 to `requestsPerUnit`. The next window pays
   * for them.
   */
  readonly maxDebt: number;
  /** Smallest number of hits that is a charge, see isCharge. */
  readonly minChargeHits: number;
  readonly lease: LeaseTerms | undefined;

  /** See {@link windowRate}. */
  constructor(unit: WindowUnit, requestsPerUnit: number, options: WindowOptions) {
    const { multiplier = 1, timeZone, maxDebt = 0, countsOnlyAllowed = false } = options;
    this.unit = unit;
    this.multiplier = multiplier;
    this.requestsPerUnit = requestsPerUnit;
    this.lengthMicros = UNIT_MICROS[unit] * multiplier;
    this.reportedUnit =
      multiplier === 1 ? unit : WINDOW_UNITS.find((one) => UNIT_MICROS[one] === this.lengthMicros);
    expectCount(requestsPerUnit, 0, 'the number of requests per unit');
    expectCount(multiplier, 1, 'the number of units in a window');
    expectCount(this.lengthMicros, 1, 'the length of a window');
    this.calendar =
      timeZone === undefined || !isCalendarUnit(unit) ? undefined : CalendarWindows.of(timeZone, unit);
    this.countsOnlyAllowed = countsOnlyAllowed;
    this.maxDebt = maxDebt;
    this.lease = options.lease;
    this.minChargeHits = options.minChargeHits ?? minChargeHitsOf(maxDebt);
    expectDebt(maxDebt, this.minChargeHits);
  }

  nowOf(_tokenMicros: number, windowMicros: number): number {
    return windowMicros;
  }

  take(
    bucket: RunningBucket,
    operation: BucketOperation,
    nowMicros: number,
    countDeniedHits: boolean,
  ): boolean {
    const { hits, refund, enforcement } = operation;
    if (!refund) return this.countHits(bucket, hits, nowMicros, countDeniedHits, enforcement === 'spill');
    this.normalize(bucket, nowMicros);
    if (!this.isDebtLocked(bucket)) this.refund(bucket, operation);
    return false;
  }

  charge(bucket: RunningBucket, hits: number, nowMicros: number, undoAtMicros?: number): number {
    this.normalize(bucket, nowMicros);
    if (undoAtMicros !== undefined && undoAtMicros !== bucket.windowStart) return 0;
    const left = Math.max(0, this.maxCountWithDebt - bucket.count);
    const counted = Math.min(hits, left);
    const before = bucket.count;
    bucket.count += counted;
    invariant(bucket.count >= before, COUNT);
    // Another limit, or the count of denied hits, may have raised the count. Stored as a debt, the window is used up
    // for every limit.
    if (this.maxDebt > 0) bucket.count = Math.min(bucket.count, this.maxCountWithDebt);
    bucket.dirty = !this.isDebtLocked(bucket) || bucket.dirty;
    return hits - counted;
  }

  deny(
    bucket: RunningBucket,
    { hits, refund }: BucketOperation,
    snapshot: TakeSnapshot,
    nowMicros: number,
    countDeniedHits: boolean,
  ): void {
    // 0 hits is a peek. Refunds and charges of a denied request do not change the window.
    const counts = !refund && hits < this.minChargeHits && this.countsDenied(countDeniedHits);
    this.countHits(bucket, counts ? hits : 0, nowMicros, countDeniedHits);
    // A limit in a list reports the state that it found, as a limited token bucket does.
    if (!snapshot.overLimit || !this.countsOnlyAllowed) snapshot.record(snapshot.overLimit, bucket);
  }

  /**
   * A window in debt is stored as the next window with minus the excess hits, so that the debt lasts until the next
   * window ends. If that state is read before the next window starts, the current window is used up. A rule without
   * debt leaves such a state unchanged: otherwise, replicas that briefly disagree about `allow_debt` would in turn
   * forget the hits of a window. A count above the maximum debt is not a debt: it stays as it is for
   * servers that still use the limit that has raised it.
   */
  toStoredForm(bucket: RunningBucket, nowMicros: number): void {
    const { count } = bucket;
    if (this.maxDebt === 0 || count <= this.requestsPerUnit || count > this.maxCountWithDebt) return;
    const start = this.startOf(nowMicros);
    const end = this.endOf(start);
    if (bucket.windowStart !== start || bucket.unit !== start - end) return;
    bucket.setState(end - this.endOf(end), end, this.requestsPerUnit - count);
  }

  undoMicrosOf(takenMicros: number): number {
    return this.startOf(takenMicros);
  }

  outcome(_hits: number, snapshot: TakeSnapshot, nowMicros: number, cached = false): TakeOutcome {
    const { overLimit, uncollectedHits } = snapshot;
    const count = this.maxDebt > 0 ? Math.min(snapshot.count, this.maxCountWithDebt) : snapshot.count;
    let end = this.endOf(snapshot.windowStart);
    // If the debt also uses up the next window, hits are allowed again after the next window ends.
    if (overLimit && this.maxDebt > 0 && count >= 2 * this.requestsPerUnit) end = this.endOf(end);
    return {
      overLimit,
      remaining: this.remaining(overLimit, count),
      waitMicros: Math.max(0, end - nowMicros),
      undoAtMicros: snapshot.windowStart,
      used: count,
      uncollectedHits,
      cached,
    };
  }

  /**
   * Returns the hits that remain after `count` hits. If the take was limited, a limit in a list reports how many hits a
   * smaller request may still take. Any other window reports 0, as envoyproxy/ratelimit does.
   */
  remaining(overLimit: boolean, count: number): number {
    if (overLimit && !this.countsOnlyAllowed) return 0;
    return Math.min(Math.max(0, this.requestsPerUnit - count), MAX_UINT32);
  }

  /**
   * Limits in a list and limits with holds never count denied hits. Windows with debt do not either, because denied
   * hits must not increase the debt.
   */
  countsDenied(countDeniedHits: boolean): boolean {
    return countDeniedHits && !this.countsOnlyAllowed && this.maxDebt === 0;
  }

  get reportedLimit(): number {
    return this.requestsPerUnit;
  }

  get hasFixedPeriod(): boolean {
    return this.calendar === undefined;
  }

  periodSeconds(wallMicros: number): number {
    if (this.calendar === undefined) return this.lengthMicros / UNIT_MICROS.second;
    const start = this.startOf(wallMicros);
    return Math.round((this.endOf(start) - start) / UNIT_MICROS.second);
  }

  resetSecond(seconds: number): number {
    return Math.round(seconds);
  }

  /** Assumes a window that was used up and also counts these hits. */
  assumedUsed(hits: number): number {
    return this.requestsPerUnit + hits;
  }

  /** Returns the start of the window that contains `micros`, in microseconds of the wall clock. */
  startOf(micros: number): number {
    const { calendar, lengthMicros } = this;
    return calendar === undefined ? micros - (micros % lengthMicros) : calendar.startAt(micros);
  }

  /** Also the start of the next window. */
  endOf(start: number): number {
    const { calendar, lengthMicros } = this;
    return calendar === undefined ? start + lengthMicros : calendar.endOf(start);
  }

  /** Maximum number of hits that a window with debt counts. */
  get maxCountWithDebt(): number {
    return this.requestsPerUnit + this.maxDebt;
  }

  /** Counts a take, or peeks (0 hits). Returns whether it was limited. */
  private countHits(
    bucket: RunningBucket,
    hits: number,
    nowMicros: number,
    countDeniedHits: boolean,
    spills = false,
  ): boolean {
    this.normalize(bucket, nowMicros);
    const before = bucket.count;
    const owes = this.isDebtLocked(bucket);
    // With debt, or if another limit pays, a peek asks for one more hit, as it does for a token bucket. A limit of 0
    // denies everything.
    const asksForOne = hits === 0 && (spills || this.maxDebt > 0 || this.requestsPerUnit === 0);
    const requested = asksForOne ? 1 : hits;
    // The sum of two safe integers may be rounded, but never to below a 32-bit limit.
    const overLimit = before + requested > this.requestsPerUnit || requested > this.requestsPerUnit;
    if (hits > 0 && (!overLimit || this.countsDenied(countDeniedHits))) {
      bucket.count = Math.min(before + hits, MAX_COUNT);
      invariant(bucket.count >= before, COUNT);
      bucket.dirty = !owes || bucket.dirty;
    }
    return overLimit;
  }

  /** Refunds hits to the window that they were taken from. */
  private refund(bucket: RunningBucket, { hits, undoAtMicros }: BucketOperation): void {
    if (undoAtMicros !== undefined && undoAtMicros !== bucket.windowStart) return;
    const before = bucket.count;
    bucket.count = Math.max(0, before - hits);
    if (bucket.count !== before) bucket.dirty = true;
  }

  /**
   * Returns whether another rule, which allows debt, put the window into debt. A rule without debt leaves it unchanged.
   */
  private isDebtLocked({ hasForeignDebt }: RunningBucket): boolean {
    return hasForeignDebt && this.maxDebt === 0;
  }

  /** Converts the state to the current window of this rate. A debt of the previous window counts in it. */
  private normalize(bucket: RunningBucket, nowMicros: number): void {
    const start = this.startOf(nowMicros);
    const end = this.endOf(start);
    if (bucket.unit !== start - end || bucket.windowStart !== start) {
      // A debt is stored as hits of the next window; see toStoredForm.
      const isNext = bucket.unit < 0 && bucket.windowStart === end;
      bucket.hasForeignDebt = isNext && this.maxDebt === 0 && bucket.count < 0;
      let count = 0;
      if (bucket.hasForeignDebt) count = MAX_COUNT;
      else if (isNext && this.maxDebt > 0) {
        count = Math.min(this.requestsPerUnit + Math.abs(bucket.count), this.maxCountWithDebt);
      }
      bucket.setState(start - end, start, count);
      return;
    }
    if (bucket.count < 0) bucket.count = -bucket.count;
  }
}

/** Creates a fixed window from validated numbers. Its length is at most MAX_FILL_MICROS. */
export function windowRate(
  unit: WindowUnit,
  requestsPerUnit: number,
  options: WindowOptions = {},
): WindowRate {
  return new WindowRate(unit, requestsPerUnit, options);
}
