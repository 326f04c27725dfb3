import { invariant } from '../runtime/invariant.js';
import type { HeldHits, HoldEffect } from './holds/hold.js';

/**
 * The state of one bucket, with accessors for both algorithms. The state of a token bucket is the time at which it is
 * full; the state of a window is its start and the hits counted.
 */
class BucketState implements Span {
  wholeMicros = 0;
  remainder = 0;
  /** {@link fullAtMicros} of a token bucket before the current item was applied. */
  previousFullAtMicros = 0;

  /** Time at which a token bucket is full, in microseconds. */
  get fullAtMicros(): number {
    return this.wholeMicros;
  }

  /** Fraction of {@link fullAtMicros}, in 1/q µs. */
  get carry(): number {
    return this.remainder;
  }

  /** Start of a window, in microseconds. */
  get windowStart(): number {
    return this.wholeMicros;
  }

  /** Hits counted in a window. */
  get count(): number {
    return this.remainder;
  }

  set count(hits: number) {
    this.remainder = hits;
  }
}

const NO_HITS: HeldHits = { amount: 0, fullAtMicros: 0 };

/**
 * The state of the bucket after one item of a request was applied, and the result of that item. Used to compute the
 * reported outcome.
 */
export class TakeSnapshot extends BucketState {
  overLimit = false;
  /** Hits of a charge beyond the maximum debt, which are forgiven. */
  uncollectedHits = 0;
  /**
   * For an item that settles a hold: the time at which the hold was placed, on the clock of the rate; -1 if the hold
   * does not exist. The store sets it before the decision.
   */
  takenMicros = -1;
  /** For an item that settles the oldest hold: the hits of that hold. The store sets it. */
  held: HeldHits = NO_HITS;
  /**
   * For an item that places a hold: whether the store has room for the hold. If it has none, the item is limited. The
   * store sets it before the decision.
   */
  holdFits = true;
  /** Effect of the item on its hold; undefined if the item has no hold, or has placed none. */
  hold: HoldEffect | undefined;

  record(overLimit: boolean, bucket: BucketState): void {
    this.overLimit = overLimit;
    this.wholeMicros = bucket.wholeMicros;
    this.remainder = bucket.remainder;
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
 *     concurrent requests       0                       0                                slots held
 *
 * (*) A full bucket, or a window without hits.
 *
 * A window in debt is stored as the next window, with minus the hits that exceed the limit (WindowRate.toStoredForm).
 */
export class RunningBucket extends BucketState {
  unit = 0;
  /** Whether tokens or hits were taken, refunded or counted since {@link load}. */
  dirty = false;
  /** Whether a rule with debt put the window into debt, which the current rule, without debt, may not change. */
  hasForeignDebt = false;
  private loadedUnit = 0;
  private loadedWhole = 0;
  private loadedPart = 0;

  /** Loads a stored state at the start of a request. */
  load(unit: number, whole: number, part: number): void {
    this.loadedUnit = unit;
    this.loadedWhole = whole;
    this.loadedPart = part;
    this.restore();
  }

  /** Replaces the state, for example when the rate or the window has changed. */
  setState(unit: number, whole: number, part: number): void {
    this.unit = unit;
    this.wholeMicros = whole;
    this.remainder = part;
  }

  /** Undoes all changes since {@link load}. */
  restore(): void {
    this.unit = this.loadedUnit;
    this.wholeMicros = this.loadedWhole;
    this.remainder = this.loadedPart;
    this.dirty = false;
    this.hasForeignDebt = false;
  }

  /** Whether the state need not be stored: the bucket is full, or the window has no hits. */
  isBlank(nowMicros: number): boolean {
    if (this.unit < 0) return this.remainder === 0;
    return this.wholeMicros < nowMicros || (this.wholeMicros === nowMicros && this.remainder === 0);
  }
}

/**
 * A point in time or a duration: whole microseconds and a part in 1/q µs, 0 <= part < q, for the q of a rate
 * (TokenBucketRate). Rounding therefore never adds or loses a fraction of a token.
 */
export interface Span {
  wholeMicros: number;
  remainder: number;
}

const CARRY = 'the fractional part of a span is at least 0 and less than q';

/** Adds `whole` µs and `part` / q µs to `span`. */
export function addTo(span: Span, whole: number, part: number, q: number): void {
  span.wholeMicros += whole;
  span.remainder += part;
  if (span.remainder >= q) {
    span.remainder -= q;
    span.wholeMicros += 1;
  }
  invariant(span.remainder >= 0 && span.remainder < q, CARRY);
}

/** Subtracts `whole` µs and `part` / q µs from `span`. */
export function subtractFrom(span: Span, whole: number, part: number, q: number): void {
  span.wholeMicros -= whole;
  span.remainder -= part;
  if (span.remainder < 0) {
    span.remainder += q;
    span.wholeMicros -= 1;
  }
  invariant(span.remainder >= 0 && span.remainder < q, CARRY);
}

/** Returns whether `span` is at least `whole` µs and `part` / q µs. */
export function reaches(span: Readonly<Span>, whole: number, part: number): boolean {
  return span.wholeMicros > whole || (span.wholeMicros === whole && span.remainder >= part);
}

/** Returns whether `span` is greater than `whole` µs and `part` / q µs. */
export function exceeds(span: Readonly<Span>, whole: number, part: number): boolean {
  return span.wholeMicros > whole || (span.wholeMicros === whole && span.remainder > part);
}
