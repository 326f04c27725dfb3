import { invariant } from '../invariant.js';
import { CalendarWindows, isCalendarUnit } from './calendar.js';
import { type BucketOperation, MAX_UINT32, minChargeHitsOf, type RateAlgorithm } from './rate-algorithm.js';
import type { RunningBucket, TakeSnapshot } from './running-bucket.js';
import type { TakeOutcome } from './take-outcome.js';
import { UNIT_MICROS, WINDOW_UNITS, type WindowUnit } from './window-unit.js';

/** Hits of a window saturate here. */
export const MAX_COUNT = Number.MAX_SAFE_INTEGER;

const COUNT = 'hits that are counted leave no more than before';

/** How a window differs from one plain unit. */
export interface WindowOptions {
  /** Units to a window, an integer >= 1; default 1. */
  readonly multiplier?: number;
  /** IANA name of a time zone whose days, weeks, months or years the windows are; see {@link CalendarWindows}. */
  readonly timeZone?: string | undefined;
  /** See {@link WindowRate.maxDebt}; default 0. */
  readonly maxDebt?: number;
  /** See {@link WindowRate.minChargeHits}; default what the debt says. */
  readonly minChargeHits?: number;
  /** See {@link WindowRate.allOrNothing}; default false. */
  readonly allOrNothing?: boolean;
}

/**
 * A fixed window: at most `requestsPerUnit` hits in each. Aligned to the epoch, so many `lengthMicros` each, or with
 * `calendar` the days, weeks, months or years of a time zone. Its state is the start of the window and the hits
 * counted: fewer than 0 where more than the limit was granted (`TakeItem.over`), see {@link RunningBucket}.
 */
export class WindowRate implements RateAlgorithm {
  readonly kind = 'window' as const;
  readonly byWallClock = true;
  readonly unit: WindowUnit;
  /** Units to a window (`unit_multiplier`); 1 with a calendar. */
  readonly multiplier: number;
  readonly requestsPerUnit: number;
  /** Of a calendar's windows, which differ, the nominal length. */
  readonly lengthMicros: number;
  readonly calendar: CalendarWindows | undefined;
  /**
   * Counts no hits of a denied request, whatever other windows do: a limit of a list, which is decided all or nothing.
   */
  readonly allOrNothing: boolean;
  /** Hits that charges may count past a used up window, to be paid by the next one: 0 to `requestsPerUnit`. */
  readonly maxDebt: number;
  /** Most hits that may be granted past the limit (`TakeItem.over`): none to a limit of 0, which lets nothing pass. */
  readonly maxSurplus: number;

  /** Fewest hits that are a charge, see isCharge. */
  readonly minChargeHits: number;

  /** See {@link windowRate}. */
  constructor(unit: WindowUnit, requestsPerUnit: number, options: WindowOptions) {
    const { multiplier = 1, timeZone, maxDebt = 0, allOrNothing = false } = options;
    this.unit = unit;
    this.multiplier = multiplier;
    this.requestsPerUnit = requestsPerUnit;
    this.lengthMicros = UNIT_MICROS[unit] * multiplier;
    this.calendar =
      timeZone === undefined || !isCalendarUnit(unit) ? undefined : CalendarWindows.of(timeZone, unit);
    this.allOrNothing = allOrNothing;
    this.maxDebt = maxDebt;
    this.maxSurplus = requestsPerUnit === 0 ? 0 : MAX_UINT32 - requestsPerUnit;
    this.minChargeHits = options.minChargeHits ?? minChargeHitsOf(maxDebt);
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
    const { hits, refund } = operation;
    if (!refund) return this.countHits(bucket, hits, nowMicros, countDeniedHits);
    this.normalize(bucket, nowMicros);
    if (!this.isDebtLocked(bucket)) this.refund(bucket, operation);
    encodeSurplus(bucket);
    return false;
  }

  charge(bucket: RunningBucket, hits: number, nowMicros: number): number {
    this.normalize(bucket, nowMicros);
    const left = Math.max(0, this.maxCountWithDebt - bucket.count);
    const counted = Math.min(hits, left);
    const before = bucket.count;
    bucket.count += counted;
    invariant(bucket.count >= before, COUNT);
    bucket.dirty = !this.isDebtLocked(bucket) || bucket.dirty;
    encodeSurplus(bucket);
    return hits - counted;
  }

  deny(
    bucket: RunningBucket,
    { hits, refund }: BucketOperation,
    snapshot: TakeSnapshot,
    nowMicros: number,
    countDeniedHits: boolean,
  ): void {
    // Hits 0 is a look; refunds and charges of a denied request change nothing.
    const counts = !refund && hits < this.minChargeHits && this.countsDenied(countDeniedHits);
    this.countHits(bucket, counts ? hits : 0, nowMicros, countDeniedHits);
    // A limit of a list reports what it found, as a limited token bucket does.
    if (!snapshot.limited || !this.allOrNothing) snapshot.record(snapshot.limited, bucket);
  }

  /**
   * A window in debt is stored as the next one with minus the hits that are too many: so it lasts until that one ends,
   * which begins with them. Read before, it says that this one is used up, to a rule without debt, too: that one leaves
   * it as it is, or replicas that disagree about `allow_debt` for a while would forget the hits of a window by turns.
   */
  toStoredForm(bucket: RunningBucket, nowMicros: number): void {
    if (this.maxDebt === 0 || bucket.count <= this.requestsPerUnit) return;
    const start = this.startOf(nowMicros);
    const end = this.endOf(start);
    if (bucket.windowStart !== start || bucket.unit !== start - end) return;
    bucket.setState(end - this.endOf(end), end, this.requestsPerUnit - bucket.count);
  }

  outcome(_hits: number, snapshot: TakeSnapshot, nowMicros: number, cached = false): TakeOutcome {
    const { limited, count, forgiven } = snapshot;
    let end = this.endOf(snapshot.windowStart);
    // A debt that uses up the next window, too, is paid when that one has ended.
    if (limited && this.maxDebt > 0 && count >= 2 * this.requestsPerUnit) end = this.endOf(end);
    return {
      limited,
      remaining: this.remaining(limited, count),
      waitMicros: Math.max(0, end - nowMicros),
      undoMark: snapshot.windowStart,
      used: Math.max(0, count),
      forgiven,
      cached,
    };
  }

  /**
   * Hits left once `count` were counted. Where one is limited, a limit of a list says how many smaller requests may
   * still take; any other window says 0, as the reference does.
   */
  remaining(limited: boolean, count: number): number {
    if (limited && !this.allOrNothing) return 0;
    return Math.min(Math.max(0, this.requestsPerUnit - count), MAX_UINT32);
  }

  /** Not in lists of limits, nor with debt, which must not grow by what was denied. */
  countsDenied(countDeniedHits: boolean): boolean {
    return countDeniedHits && !this.allOrNothing && this.maxDebt === 0;
  }

  get reportedLimit(): number {
    return this.requestsPerUnit;
  }

  reportedUnit(): WindowUnit | undefined {
    if (this.multiplier === 1) return this.unit;
    return WINDOW_UNITS.find((unit) => UNIT_MICROS[unit] === this.lengthMicros);
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

  /** As of a window that was used up, and counts these hits, too. */
  assumedUsed(hits: number): number {
    return this.requestsPerUnit + hits;
  }

  /** Start of the window that holds `micros`, wall clock microseconds. */
  startOf(micros: number): number {
    const { calendar, lengthMicros } = this;
    return calendar === undefined ? micros - (micros % lengthMicros) : calendar.startAt(micros);
  }

  /** End of the window that starts at `start`, which is the start of the next one. */
  endOf(start: number): number {
    const { calendar, lengthMicros } = this;
    return calendar === undefined ? start + lengthMicros : calendar.endOf(start);
  }

  /** The most hits that a window with debt counts. */
  get maxCountWithDebt(): number {
    return this.requestsPerUnit + this.maxDebt;
  }

  /** Counts a take, or looks (0 hits). Returns whether it was limited. */
  private countHits(
    bucket: RunningBucket,
    hits: number,
    nowMicros: number,
    countDeniedHits: boolean,
  ): boolean {
    this.normalize(bucket, nowMicros);
    const before = bucket.count;
    const owes = this.isDebtLocked(bucket);
    // With debt a peek asks for one hit more, as at a token bucket.
    const asked = this.maxDebt > 0 && hits === 0 ? 1 : hits;
    // The sum of two safe integers may round, but never to below a limit of 32 bits.
    const limited = before + asked > this.requestsPerUnit || asked > this.requestsPerUnit;
    if (hits > 0 && (!limited || this.countsDenied(countDeniedHits))) {
      bucket.count = Math.min(before + hits, MAX_COUNT);
      invariant(bucket.count >= before, COUNT);
      bucket.dirty = !owes || bucket.dirty;
    }
    encodeSurplus(bucket);
    return limited;
  }

  /** A refund, to the window that it is for. Below 0 hits goes what says so, or undoes a take while there is more. */
  private refund(bucket: RunningBucket, { hits, undoMark, allowSurplus = false }: BucketOperation): void {
    if (undoMark !== undefined && undoMark !== bucket.windowStart) return;
    const before = bucket.count;
    const isOver = undoMark === undefined ? allowSurplus : before < 0;
    bucket.count = Math.max(Math.min(before, isOver ? 0 - this.maxSurplus : 0), before - hits);
    if (bucket.count !== before) bucket.dirty = true;
  }

  /** Whether the window is in a debt of a rule that has one, which this one, without, leaves as it is. */
  private isDebtLocked({ hasForeignDebt }: RunningBucket): boolean {
    return hasForeignDebt && this.maxDebt === 0;
  }

  /** Brings the state into the terms of the window that holds now; a debt of the one before counts in it. */
  private normalize(bucket: RunningBucket, nowMicros: number): void {
    const start = this.startOf(nowMicros);
    const end = this.endOf(start);
    if (bucket.whole < 0) {
      // More than the limit may pass in one window; of another one nothing is kept.
      const isOther = bucket.unit !== start - end || bucket.windowStart !== start;
      bucket.setState(start - end, start, isOther ? 0 : bucket.count);
      if (isOther) bucket.hasForeignDebt = false;
      return;
    }
    if (bucket.unit !== start - end || bucket.windowStart !== start) {
      // A debt is kept as hits of the next window, see fold.
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
    // Another limit was in force, or denied hits were counted: none of it makes a deeper debt.
    if (this.maxDebt > 0 && bucket.count > this.maxCountWithDebt) bucket.count = this.maxCountWithDebt;
  }
}

/** Brings a window of which more than the limit may pass into the form in which it is stored, see RunningBucket. */
function encodeSurplus(bucket: RunningBucket): void {
  if (bucket.part < 0) bucket.setState(bucket.unit, -1 - bucket.whole, -bucket.part);
}

/** Builds a fixed window from already validated numbers; its length is at most MAX_FILL_MICROS. */
export function windowRate(
  unit: WindowUnit,
  requestsPerUnit: number,
  options: WindowOptions = {},
): WindowRate {
  return new WindowRate(unit, requestsPerUnit, options);
}
