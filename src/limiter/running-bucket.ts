import type { HeldHits, HoldEffect } from './holds/hold.js';
import type { Span } from './span.js';

/**
 * The state of one bucket, with accessors for both algorithms. The state of a token bucket is the time at which it is
 * full; the state of a window is its start and the hits counted.
 */
class BucketState implements Span {
  whole = 0;
  part = 0;
  /** {@link fullAtMicros} of a token bucket before the current item was applied. */
  previousFullAtMicros = 0;

  /** Time at which a token bucket is full, in microseconds. For a bucket with a surplus, see {@link RunningBucket}. */
  get fullAtMicros(): number {
    return this.whole;
  }

  /** Fraction of {@link fullAtMicros}, in 1/q µs. */
  get carry(): number {
    return this.part;
  }

  /** Start of a window, in microseconds. */
  get windowStart(): number {
    return this.whole < 0 ? -1 - this.whole : this.whole;
  }

  /** Hits counted in a window. Negative if more hits than the limit are granted. */
  get count(): number {
    return this.whole < 0 ? -this.part : this.part;
  }

  set count(hits: number) {
    this.part = hits;
  }
}

const NO_HITS: HeldHits = { amount: 0, fullMicros: 0 };

/**
 * The state of the bucket after one item of a request was applied, and the result of that item. Used to compute the
 * reported outcome.
 */
export class TakeSnapshot extends BucketState {
  limited = false;
  /** Hits of a charge beyond the maximum debt, which are forgiven. */
  forgiven = 0;
  /**
   * For an item that settles a hold: when the hold was taken, on the clock of the rate; -1 if there is no such hold.
   * The store sets it before the decision.
   */
  takenMicros = -1;
  /** For an item that settles the oldest hold: the hits of that hold. The store sets it. */
  held: HeldHits = NO_HITS;
  /**
   * For a take that holds: whether the store has room for the hold. If not, the item is limited. The store sets it
   * before the decision.
   */
  holdFits = true;
  /** Effect of the item on its hold; undefined if it has none, or placed none. */
  hold: HoldEffect | undefined;

  record(limited: boolean, bucket: BucketState): void {
    this.limited = limited;
    this.whole = bucket.whole;
    this.part = bucket.part;
    this.previousFullAtMicros = bucket.previousFullAtMicros;
  }
}

/**
 * The state of one bucket while requests are decided on it, in the form in which stores keep it.
 *
 *                               unit                    whole                            part
 *     nothing stored *          0                       0                                0
 *     token bucket              q of its rate           time at which it is full, µs     carry, in 1/q µs
 *     window                    minus its length, µs    its start, µs                    hits counted
 *     token bucket, surplus     q of its rate           minus the refill time of it, µs  carry, in 1/q µs
 *     window, surplus           minus its length, µs    -1 - its start, µs               hits above the limit
 *     concurrent requests       0                       0                                slots held
 *
 * (*) A full bucket, or a window without hits.
 *
 * A window in debt is stored as the next window, with minus the hits that exceed the limit (WindowRate.toStoredForm). A
 * token bucket has a surplus if more tokens were refunded than fit (`TakeItem.allowSurplus`). It does not refill, so
 * its state does not depend on the time: `whole` plus `part`/q is the negative time that the surplus would take to
 * refill.
 */
export class RunningBucket extends BucketState {
  unit = 0;
  /** Whether tokens or hits were taken, refunded or counted since {@link load}. */
  dirty = false;
  /** Whether the loaded state was out of bounds and the corrected state must be stored; see {@link repair}. */
  repaired = false;
  /** Whether a rule with debt put the window into debt, which the current rule, without debt, may not change. */
  hasForeignDebt = false;
  /** Time at which the surplus of a token bucket expires, in microseconds, unless it is used up before. */
  surplusEndMicros = Infinity;
  private loadedEnds = Infinity;
  private loadedUnit = 0;
  private loadedWhole = 0;
  private loadedPart = 0;

  /** Loads a stored state at the start of a request. */
  load(unit: number, whole: number, part: number): void {
    this.loadedEnds = Infinity;
    this.loadedUnit = unit;
    this.loadedWhole = whole;
    this.loadedPart = part;
    this.repaired = false;
    this.restore();
  }

  /** Sets the time at which the surplus of a token bucket expires. Call it after {@link load}. */
  setSurplusEnd(micros: number): void {
    this.loadedEnds = micros;
    this.surplusEndMicros = micros;
  }

  /** Replaces the state, for example when the rate or the window has changed. */
  setState(unit: number, whole: number, part: number): void {
    this.unit = unit;
    this.whole = whole;
    this.part = part;
  }

  /**
   * Treats the current state, which is not {@link dirty}, as the stored state, so that it is stored even if the request
   * does not change it. Otherwise, a bucket that a clock step or another limit left below its minimum would be clamped
   * to empty at each read and never refill.
   */
  repair(): void {
    this.loadedUnit = this.unit;
    this.loadedWhole = this.whole;
    this.loadedPart = this.part;
    this.repaired = true;
  }

  /** Undoes all changes since {@link load}. */
  restore(): void {
    this.unit = this.loadedUnit;
    this.whole = this.loadedWhole;
    this.part = this.loadedPart;
    this.surplusEndMicros = this.loadedEnds;
    this.dirty = false;
    this.hasForeignDebt = false;
  }

  /** Whether the bucket is a token bucket with a surplus. */
  get hasSurplus(): boolean {
    return this.whole < 0 && this.unit > 0;
  }

  /** Whether the state need not be stored: the bucket is full, or the window has no hits. */
  isBlank(nowMicros: number): boolean {
    if (this.unit < 0) return this.part === 0;
    if (this.whole < 0) return this.surplusEndMicros <= nowMicros;
    return this.whole < nowMicros || (this.whole === nowMicros && this.part === 0);
  }
}
