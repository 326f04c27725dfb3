import {
  type BucketOperation,
  expectCount,
  expectDebt,
  type LeaseTerms,
  MAX_FILL_MICROS,
  MAX_UINT32,
  minChargeHitsOf,
  type RateAlgorithm,
  type TakeOutcome,
} from './rate-algorithm.js';
import {
  addTo,
  exceeds,
  type RunningBucket,
  reaches,
  type Span,
  subtractFrom,
  type TakeSnapshot,
} from './running-bucket.js';
import { UNIT_MICROS, WINDOW_UNITS, type WindowUnit } from './window-unit.js';

/** A refill rate: one token takes `p / q` µs, in lowest terms. */
interface Refill {
  readonly refillNumerator: number;
  readonly refillDenominator: number;
}

function gcd(a: number, b: number): number {
  while (b > 0) [a, b] = [b, a % b];
  return a;
}

/**
 * Returns the whole microseconds that `tokens` take to refill: floor(tokens * p / q). Exact for all tokens <=
 * maxTokens.
 */
export function refillWhole(rate: Refill, tokens: number): number {
  const product = tokens * rate.refillNumerator;
  if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / rate.refillDenominator);
  return Number((BigInt(tokens) * BigInt(rate.refillNumerator)) / BigInt(rate.refillDenominator));
}

/** Returns the fraction that {@link refillWhole} omits, in 1/q µs: tokens * p mod q. */
export function refillRemainder(rate: Refill, tokens: number): number {
  if (rate.refillDenominator === 1) return 0;
  const product = tokens * rate.refillNumerator;
  if (product <= Number.MAX_SAFE_INTEGER) return product % rate.refillDenominator;
  return Number((BigInt(tokens) * BigInt(rate.refillNumerator)) % BigInt(rate.refillDenominator));
}

/** Takes tokens from the state of a bucket that is known to hold them. */
export function takeTokens(state: Span, rate: TokenBucketRate, tokens: number): void {
  addTo(state, refillWhole(rate, tokens), refillRemainder(rate, tokens), rate.refillDenominator);
}

/** Reused for each outcome: the tokens in the bucket, as the time that they took to refill. */
const available: Span = { wholeMicros: 0, remainder: 0 };

/**
 * A token bucket (Envoy's envoy.type.v3.TokenBucket), implemented as GCRA with exact integer arithmetic. Its state is
 * the time at which it is full, as a {@link Span}: from now, for a full bucket, to now plus the time to fill from empty
 * or from the maximum debt.
 *
 * The state of another limit may be later than that, because a changed limit reaches one server after another. For this
 * limit, such a bucket is empty, or at its maximum debt. The time stays as it is and only refunds make it earlier:
 * otherwise, the server with the other limit would find tokens that nobody gave back.
 */
export class TokenBucketRate implements RateAlgorithm {
  readonly kind = 'token_bucket' as const;
  readonly byWallClock = false;
  readonly hasFixedPeriod = true;
  /** Capacity in tokens, 1 to 2^32-1. */
  readonly maxTokens: number;
  /** Tokens added per `fillIntervalMicros`. */
  readonly tokensPerFill: number;
  readonly fillIntervalMicros: number;
  /** One token takes `p / q` µs to refill, in lowest terms. */
  readonly refillNumerator: number;
  readonly refillDenominator: number;
  /** Time an empty bucket needs to fill: whole µs and carry in 1/q µs. */
  readonly fillWhole: number;
  readonly fillCarry: number;
  readonly reportedUnit: WindowUnit | undefined;
  /**
   * Maximum debt in tokens (`max_debt`), which charges may take from an empty bucket. 0: no debt, and no request is a
   * charge.
   */
  readonly maxDebt: number;
  /** Smallest number of hits that is a charge, see isCharge. */
  readonly minChargeHits: number;
  /** Time a bucket needs to fill from its maximum debt, or from empty if it has no debt. */
  readonly debtWhole: number;
  readonly debtCarry: number;
  /** Maximum number of hits of a charge or refund that change a bucket, also one with the state of another limit. */
  readonly maxChangedHits: number;
  readonly lease: LeaseTerms | undefined;

  /** See {@link tokenBucketRate}. */
  constructor(
    maxTokens: number,
    tokensPerFill: number,
    fillIntervalMicros: number,
    maxDebt: number,
    minChargeHits = minChargeHitsOf(maxDebt),
    lease?: LeaseTerms,
  ) {
    expectCount(maxTokens, 1, 'the capacity of a token bucket');
    expectCount(tokensPerFill, 1, 'the number of tokens per fill');
    expectCount(fillIntervalMicros, 1, 'the fill interval of a token bucket');
    expectDebt(maxDebt, minChargeHits);
    const divisor = gcd(fillIntervalMicros, tokensPerFill);
    this.maxTokens = maxTokens;
    this.tokensPerFill = tokensPerFill;
    this.fillIntervalMicros = fillIntervalMicros;
    this.refillNumerator = fillIntervalMicros / divisor;
    this.refillDenominator = tokensPerFill / divisor;
    this.fillWhole = refillWhole(this, maxTokens);
    this.fillCarry = refillRemainder(this, maxTokens);
    this.reportedUnit =
      this.fillCarry === 0 ? WINDOW_UNITS.find((one) => UNIT_MICROS[one] === this.fillWhole) : undefined;
    this.maxDebt = maxDebt;
    this.minChargeHits = minChargeHits;
    this.debtWhole = refillWhole(this, maxTokens + maxDebt);
    this.debtCarry = refillRemainder(this, maxTokens + maxDebt);
    expectCount(this.debtWhole, 0, 'the time that a token bucket needs to fill');
    const longest = Math.floor((MAX_FILL_MICROS * this.refillDenominator) / this.refillNumerator);
    this.lease = lease;
    this.maxChangedHits = Math.max(maxTokens + maxDebt, Math.min(MAX_UINT32, longest));
  }

  nowOf(tokenMicros: number): number {
    return tokenMicros;
  }

  take(bucket: RunningBucket, operation: BucketOperation, nowMicros: number): boolean {
    this.normalize(bucket, nowMicros);
    const { hits } = operation;
    if (operation.refund) {
      this.refund(bucket, operation, nowMicros);
      return false;
    }
    // A peek asks whether the bucket has one more token.
    const requested = hits === 0 ? 1 : hits;
    const { wholeMicros: whole, remainder: part } = bucket;
    addTo(bucket, this.takeCostWhole(requested), this.takeCostCarry(requested), this.refillDenominator);
    const limited = exceeds(bucket, nowMicros + this.fillWhole, this.fillCarry);
    if (limited || hits === 0) {
      bucket.wholeMicros = whole;
      bucket.remainder = part;
    } else bucket.dirty = true;
    return limited;
  }

  charge(bucket: RunningBucket, hits: number, nowMicros: number): number {
    this.normalize(bucket, nowMicros);
    const lowestMicros = nowMicros + this.debtWhole;
    // Another limit has left the bucket below the minimum of this one.
    if (exceeds(bucket, lowestMicros, this.debtCarry)) return hits;
    const charged = this.chargedHits(hits);
    addTo(bucket, refillWhole(this, charged), refillRemainder(this, charged), this.refillDenominator);
    bucket.dirty = true;
    if (!exceeds(bucket, lowestMicros, this.debtCarry)) return this.uncollectedOf(hits, 0);
    const excessMicros = bucket.fullAtMicros - lowestMicros;
    bucket.wholeMicros = lowestMicros;
    bucket.remainder = this.debtCarry;
    return this.uncollectedOf(hits, excessMicros);
  }

  deny(bucket: RunningBucket, _ask: BucketOperation, snapshot: TakeSnapshot, nowMicros: number): void {
    // A limited item reports the state that it found.
    if (snapshot.overLimit) return;
    this.normalize(bucket, nowMicros);
    snapshot.record(false, bucket);
  }

  toStoredForm(): void {}

  undoMicrosOf(takenMicros: number): number {
    return takenMicros;
  }

  outcome(hits: number, snapshot: TakeSnapshot, nowMicros: number, cached = false): TakeOutcome {
    const { overLimit, uncollectedHits, fullAtMicros, previousFullAtMicros } = snapshot;
    // The tokens in the bucket, as the time that they took to refill: fill - (full at - now). Negative in debt.
    available.wholeMicros = this.fillWhole;
    available.remainder = this.fillCarry;
    if (exceeds(snapshot, nowMicros + this.debtWhole, this.debtCarry)) {
      subtractFrom(available, this.debtWhole, this.debtCarry, this.refillDenominator);
    } else subtractFrom(available, fullAtMicros - nowMicros, snapshot.carry, this.refillDenominator);
    const remaining = available.wholeMicros < 0 ? 0 : Math.min(this.wholeTokens(available), MAX_UINT32);
    const requested = overLimit
      ? Math.min(Math.max(hits, 1), this.maxTokens)
      : Math.min(remaining + 1, this.maxTokens);
    let waitMicros = refillWhole(this, requested) - available.wholeMicros;
    if (refillRemainder(this, requested) > available.remainder) waitMicros += 1;
    return {
      overLimit,
      remaining,
      waitMicros: Math.max(0, waitMicros),
      undoAtMicros: cached ? undefined : this.maxDebt > 0 ? nowMicros : previousFullAtMicros,
      used: Math.max(0, this.maxTokens - remaining),
      uncollectedHits,
      cached,
    };
  }

  countsDenied(): boolean {
    return false;
  }

  get reportedLimit(): number {
    return this.maxTokens;
  }

  periodSeconds(): number {
    return Math.ceil((this.fillWhole + (this.fillCarry > 0 ? 1 : 0)) / UNIT_MICROS.second);
  }

  resetSecond(seconds: number): number {
    return Math.ceil(seconds);
  }

  assumedUsed(): number {
    return this.maxTokens;
  }

  /** Limits the hits of a charge or refund to what can change the bucket. */
  chargedHits(hits: number): number {
    return Math.min(hits, this.maxChangedHits);
  }

  /** Returns {@link refillWhole} of a refund. 2^53-1 hits fill any bucket, also one with the state of another limit. */
  refundWhole(hits: number): number {
    return hits === Number.MAX_SAFE_INTEGER ? MAX_FILL_MICROS : refillWhole(this, this.chargedHits(hits));
  }

  /** Returns {@link refillRemainder} of a refund; see {@link refundWhole}. */
  refundCarry(hits: number): number {
    return hits === Number.MAX_SAFE_INTEGER ? 0 : refillRemainder(this, this.chargedHits(hits));
  }

  /**
   * Returns {@link refillWhole} of `hits`. For more hits than the capacity, the cost exceeds what even a full bucket
   * holds, so such a take is always denied.
   */
  takeCostWhole(hits: number): number {
    return hits > this.maxTokens ? this.fillWhole + 1 : refillWhole(this, hits);
  }

  /** Returns {@link refillRemainder} of `hits`; see {@link takeCostWhole}. */
  takeCostCarry(hits: number): number {
    return hits > this.maxTokens ? 0 : refillRemainder(this, hits);
  }

  /**
   * Returns the minimum time until a bucket is full that was limited with `hits` and reported `remaining` and
   * `waitMicros`. These values determine the state to within a microsecond; the result is for the fullest possible
   * state.
   */
  minTimeToFill(hits: number, { remaining, waitMicros }: TakeOutcome): Span {
    const requested = Math.min(Math.max(hits, 1), this.maxTokens);
    // Waits are rounded up, so a wait of one microsecond less was too short: available < cost(hits) - (waitMicros - 1).
    const bound: Span = {
      wholeMicros: refillWhole(this, requested) - (waitMicros - 1),
      remainder: refillRemainder(this, requested),
    };
    // The bucket did not hold one more token: available < cost(remaining + 1).
    if (remaining < this.maxTokens) {
      const nextWhole = refillWhole(this, remaining + 1);
      const nextCarry = refillRemainder(this, remaining + 1);
      if (exceeds(bound, nextWhole, nextCarry)) {
        bound.wholeMicros = nextWhole;
        bound.remainder = nextCarry;
      }
    }
    // Subtract the smallest unit to get the largest value below the bound.
    subtractFrom(bound, 0, 1, this.refillDenominator);
    const missing: Span = { wholeMicros: this.fillWhole, remainder: this.fillCarry };
    subtractFrom(missing, bound.wholeMicros, bound.remainder, this.refillDenominator);
    return missing;
  }

  /** Converts the state to this rate. It may be below the minimum of this rate, but it is never above full. */
  private normalize(bucket: RunningBucket, nowMicros: number): void {
    if (bucket.unit <= 0) bucket.setState(this.refillDenominator, nowMicros, 0);
    else if (bucket.unit !== this.refillDenominator) {
      // The state belongs to another limit with a different q, so its carry is rounded up, against the caller.
      bucket.setState(
        this.refillDenominator,
        bucket.remainder > 0 ? bucket.wholeMicros + 1 : bucket.wholeMicros,
        0,
      );
    }
    if (bucket.wholeMicros < nowMicros) {
      bucket.wholeMicros = nowMicros;
      bucket.remainder = 0;
    }
    bucket.previousFullAtMicros = bucket.fullAtMicros;
  }

  /** Applies a refund; see Take. */
  private refund(
    bucket: RunningBucket,
    { hits, undoAtMicros, fullAtMicros, refundMicros }: BucketOperation,
    nowMicros: number,
  ): void {
    if (hits === 0 || !exceeds(bucket, nowMicros, 0)) return;
    let whole = refundMicros ?? this.refundWhole(hits);
    const part = refundMicros === undefined ? this.refundCarry(hits) : 0;
    if (undoAtMicros !== undefined) {
      if (!this.mayUndo(bucket, undoAtMicros)) return;
      // The tokens that would have overflowed without the take are not given back.
      whole -= Math.max(0, nowMicros - (fullAtMicros ?? undoAtMicros));
    }
    if (whole < 0 || (whole === 0 && part === 0)) return;
    subtractFrom(bucket, whole, part, this.refillDenominator);
    if (bucket.fullAtMicros < nowMicros) {
      bucket.wholeMicros = nowMicros;
      bucket.remainder = 0;
    }
    bucket.dirty = true;
  }

  /** Returns whether the bucket has not reached its maximum debt since the take; see Take. */
  private mayUndo(bucket: RunningBucket, undoAtMicros: number): boolean {
    return this.maxDebt === 0 || !reaches(bucket, undoAtMicros + this.debtWhole, this.debtCarry);
  }

  /**
   * Returns the tokens of a charge that nobody pays: those beyond {@link chargedHits}, and those that
   * `excessMicros` would refill, rounded to the nearest token.
   */
  private uncollectedOf(hits: number, excessMicros: number): number {
    const excess = Math.round((excessMicros * this.refillDenominator) / this.refillNumerator);
    return Math.min(hits, hits - this.chargedHits(hits) + excess);
  }

  /** Returns floor((whole + part / q) * q / p), computed exactly. */
  private wholeTokens({ wholeMicros: whole, remainder: part }: Span): number {
    const product = whole * this.refillDenominator + part;
    if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / this.refillNumerator);
    return Number(
      (BigInt(whole) * BigInt(this.refillDenominator) + BigInt(part)) / BigInt(this.refillNumerator),
    );
  }
}

/**
 * Creates a token bucket rate from validated numbers: `maxTokens` and `tokensPerFill` are integers from 1 to 2^32-1,
 * `fillIntervalMicros` is an integer >= 1000, `maxDebt` is an integer from 0 to 2^32-1. The time to fill from the
 * maximum debt is at most MAX_FILL_MICROS.
 */
export function tokenBucketRate(
  maxTokens: number,
  tokensPerFill: number,
  fillIntervalMicros: number,
  maxDebt = 0,
  minChargeHits = minChargeHitsOf(maxDebt),
  lease?: LeaseTerms,
): TokenBucketRate {
  return new TokenBucketRate(maxTokens, tokensPerFill, fillIntervalMicros, maxDebt, minChargeHits, lease);
}
