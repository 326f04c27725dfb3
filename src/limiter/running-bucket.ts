import type { Span } from './span.js';

/**
 * The state of one bucket, under the names of both algorithms. A token bucket is the time at which it is full; a window
 * is its start and the hits that it has counted.
 */
export class BucketState implements Span {
  whole = 0;
  part = 0;
  /** Of a token bucket {@link fullAtMicros} before the item at hand was applied. */
  previousFullAtMicros = 0;

  /** When a token bucket is full, µs; of one past full see {@link RunningBucket}. */
  get fullAtMicros(): number {
    return this.whole;
  }

  /** The rest of {@link fullAtMicros}, in 1/q µs. */
  get carry(): number {
    return this.part;
  }

  /** Start of a window, µs. */
  get windowStart(): number {
    return this.whole < 0 ? -1 - this.whole : this.whole;
  }

  /** Hits counted in a window; negative where more than its limit may pass. */
  get count(): number {
    return this.whole < 0 ? -this.part : this.part;
  }

  set count(hits: number) {
    this.part = hits;
  }
}

/**
 * What was found for one item of a request, to be reported: the bucket once the item was applied, and what became of
 * it.
 */
export class TakeSnapshot extends BucketState {
  limited = false;
  /** Hits of a charge that the bucket could not take on. */
  forgiven = 0;

  record(limited: boolean, bucket: BucketState): void {
    this.limited = limited;
    this.whole = bucket.whole;
    this.part = bucket.part;
    this.previousFullAtMicros = bucket.previousFullAtMicros;
  }
}

/**
 * The state of one bucket while requests are decided on it, and the form in which stores keep it.
 *
 * | | `unit` | `whole` | `part` |
 * |---|---|---|---|
 * | nothing stored: a full bucket, a window without hits | 0 | 0 | 0 |
 * | token bucket | q of its rate | time at which it is full, whole µs | carry, in 1/q µs |
 * | window | minus its length in µs | its start in µs | hits counted |
 * | token bucket past full | q of its rate | minus the time that what is over takes to refill, whole µs | as above |
 * | window of which more than the limit may pass | minus its length in µs | -1 - its start in µs | hits that are over |
 *
 * A window in debt is kept as the next one, with minus the hits that the one before could not hold (WindowRate.fold).
 * Past full is a bucket to which more was refunded than it holds (`TakeItem.over`): it does not refill, so its time
 * stands still, and `whole` plus `part`/q is what it lacks, a negative time.
 */
export class RunningBucket extends BucketState {
  unit = 0;
  /** Whether something was taken, given back or counted since {@link load}. */
  dirty = false;
  /** Whether the state was out of bounds when loaded, and must be stored within them; see {@link repair}. */
  repaired = false;
  /** Whether the window at hand is in a debt that its rule, which has none, may not change. */
  hasForeignDebt = false;
  /** When a token bucket past full is full again, if what is over is not used up before, µs. */
  surplusEndMicros = Infinity;
  private loadedEnds = Infinity;
  private loadedUnit = 0;
  private loadedWhole = 0;
  private loadedPart = 0;

  /** Starts a request with a stored state. */
  load(unit: number, whole: number, part: number): void {
    this.loadedEnds = Infinity;
    this.loadedUnit = unit;
    this.loadedWhole = whole;
    this.loadedPart = part;
    this.repaired = false;
    this.restore();
  }

  /** Behind {@link load}: says when a token bucket past full is full again. */
  setSurplusEnd(micros: number): void {
    this.loadedEnds = micros;
    this.surplusEndMicros = micros;
  }

  /** Brings the state into other terms: of another rate, or of another window. */
  setState(unit: number, whole: number, part: number): void {
    this.unit = unit;
    this.whole = whole;
    this.part = part;
  }

  /**
   * Takes the state at hand, not yet {@link dirty}, for the stored one: even a request that changes nothing stores it.
   * Or a bucket that a clock step or another limit left below empty would be brought to empty at each look, and stay
   * there.
   */
  repair(): void {
    this.loadedUnit = this.unit;
    this.loadedWhole = this.whole;
    this.loadedPart = this.part;
    this.repaired = true;
  }

  /** Undoes what happened since {@link load}. */
  restore(): void {
    this.unit = this.loadedUnit;
    this.whole = this.loadedWhole;
    this.part = this.loadedPart;
    this.surplusEndMicros = this.loadedEnds;
    this.dirty = false;
    this.hasForeignDebt = false;
  }

  /** Whether it is a token bucket past full. */
  get hasSurplus(): boolean {
    return this.whole < 0 && this.unit > 0;
  }

  /** Whether nothing need be stored: the bucket is full, the window has no hits. */
  isBlank(nowMicros: number): boolean {
    if (this.unit < 0) return this.part === 0;
    if (this.whole < 0) return this.surplusEndMicros <= nowMicros;
    return this.whole < nowMicros || (this.whole === nowMicros && this.part === 0);
  }
}
