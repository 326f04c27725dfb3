import {
  type BucketOperation,
  MAX_SURPLUS_MICROS,
  MAX_UINT32,
  minChargeHitsOf,
  type RateAlgorithm,
  SURPLUS_LIFETIME_MICROS,
} from './rate-algorithm.js';
import type { RunningBucket, TakeSnapshot } from './running-bucket.js';
import { addTo, exceeds, reaches, type Span, subtractFrom } from './span.js';
import type { TakeOutcome } from './take-outcome.js';
import { UNIT_MICROS, WINDOW_UNITS, type WindowUnit } from './window-unit.js';

/** A rate of refill: one token takes `p / q` µs, in lowest terms. */
interface Refill {
  readonly p: number;
  readonly q: number;
}

/** Greatest common divisor of two positive integers. */
function gcd(a: number, b: number): number {
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}

/** Whole microseconds that `tokens` take to refill: floor(tokens * p / q). Exact for every tokens <= maxTokens. */
export function costWhole(rate: Refill, tokens: number): number {
  const product = tokens * rate.p;
  if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / rate.q);
  return Number((BigInt(tokens) * BigInt(rate.p)) / BigInt(rate.q));
}

/** The rest of {@link costWhole}, in 1/q µs: tokens * p mod q. */
export function costCarry(rate: Refill, tokens: number): number {
  if (rate.q === 1) return 0;
  const product = tokens * rate.p;
  if (product <= Number.MAX_SAFE_INTEGER) return product % rate.q;
  return Number((BigInt(tokens) * BigInt(rate.p)) % BigInt(rate.q));
}

/** Reused: what is there of a bucket whose outcome is told. */
const available: Span = { whole: 0, part: 0 };

/**
 * Of a bucket past full: makes `whole` the time at which it would have been full, before now. Returns whether it is
 * one.
 */
function decodeSurplus(bucket: RunningBucket, nowMicros: number): boolean {
  if (bucket.whole >= 0) return false;
  bucket.whole += nowMicros;
  return true;
}

/** Of a bucket that is (still) past full the way back. */
function encodeSurplus(bucket: RunningBucket, nowMicros: number): void {
  if (bucket.whole < nowMicros) bucket.whole -= nowMicros;
}

/**
 * A token bucket (Envoy's envoy.type.v3.TokenBucket), reduced for exact integer arithmetic (GCRA): its state is the
 * time at which it is full, as a {@link Span}. Buckets lie between full (now) and empty, or the deepest debt (now + the
 * time to fill from there). One past full (`TakeItem.over`) lies before now, and keeps its distance from it: while an
 * item is applied `whole` is that time, before and after the distance, see {@link RunningBucket}.
 */
export class TokenBucketRate implements RateAlgorithm {
  readonly kind = 'token_bucket' as const;
  readonly byWallClock = false;
  readonly hasFixedPeriod = true;
  /** Capacity, 1 to 2^32-1. */
  readonly maxTokens: number;
  /** Tokens added per `fillIntervalMicros`. */
  readonly tokensPerFill: number;
  readonly fillIntervalMicros: number;
  /** One token takes `p / q` µs to refill, in lowest terms. */
  readonly p: number;
  readonly q: number;
  /** Time an empty bucket needs to fill: whole µs and carry. */
  readonly fillWhole: number;
  readonly fillCarry: number;
  /** Tokens that charges may take from an empty bucket (`max_debt`); 0: no debt, and no request is a charge. */
  readonly maxDebt: number;
  /** Fewest hits that are a charge, see isCharge. */
  readonly minChargeHits: number;
  /** Time a bucket needs to fill from its deepest debt: that of an empty one where there is none. */
  readonly debtWhole: number;
  readonly debtCarry: number;
  /** Most tokens that a bucket may hold past full (`TakeItem.over`), and the whole µs that they take to refill. */
  readonly maxSurplus: number;
  readonly surplusMicros: number;

  /** See {@link tokenBucketRate}. */
  constructor(
    maxTokens: number,
    tokensPerFill: number,
    fillIntervalMicros: number,
    maxDebt: number,
    minChargeHits = minChargeHitsOf(maxDebt),
  ) {
    const divisor = gcd(fillIntervalMicros, tokensPerFill);
    this.maxTokens = maxTokens;
    this.tokensPerFill = tokensPerFill;
    this.fillIntervalMicros = fillIntervalMicros;
    this.p = fillIntervalMicros / divisor;
    this.q = tokensPerFill / divisor;
    this.fillWhole = costWhole(this, maxTokens);
    this.fillCarry = costCarry(this, maxTokens);
    this.maxDebt = maxDebt;
    this.minChargeHits = minChargeHits;
    this.debtWhole = costWhole(this, maxTokens + maxDebt);
    this.debtCarry = costCarry(this, maxTokens + maxDebt);
    this.maxSurplus = Math.min(MAX_UINT32 - maxTokens, Math.floor((MAX_SURPLUS_MICROS * this.q) / this.p));
    this.surplusMicros = costWhole(this, this.maxSurplus) + (costCarry(this, this.maxSurplus) > 0 ? 1 : 0);
  }

  nowOf(tokenMicros: number): number {
    return tokenMicros;
  }

  take(bucket: RunningBucket, operation: BucketOperation, nowMicros: number): boolean {
    const isCut = this.normalize(bucket, nowMicros);
    const isOver = decodeSurplus(bucket, nowMicros);
    const { hits } = operation;
    if (operation.refund) {
      this.refund(bucket, operation, nowMicros, isCut);
      encodeSurplus(bucket, nowMicros);
      return false;
    }
    // A peek asks whether one more token is there.
    const asked = hits === 0 ? 1 : hits;
    const { whole, part } = bucket;
    addTo(bucket, this.takeCostWhole(asked), this.takeCostCarry(asked), this.q);
    const limited =
      exceeds(bucket, nowMicros + this.fillWhole, this.fillCarry) || (isOver && asked > this.maxTokens);
    if (limited || hits === 0) {
      bucket.whole = whole;
      bucket.part = part;
    } else bucket.dirty = true;
    if (isOver) encodeSurplus(bucket, nowMicros);
    return limited;
  }

  charge(bucket: RunningBucket, hits: number, nowMicros: number): number {
    this.normalize(bucket, nowMicros);
    const isOver = decodeSurplus(bucket, nowMicros);
    const charged = this.chargedHits(hits);
    addTo(bucket, costWhole(this, charged), costCarry(this, charged), this.q);
    bucket.dirty = true;
    const lowestMicros = nowMicros + this.debtWhole;
    if (isOver) encodeSurplus(bucket, nowMicros);
    if (!exceeds(bucket, lowestMicros, this.debtCarry)) return this.forgiven(hits, 0);
    const overMicros = bucket.fullAtMicros - lowestMicros;
    bucket.whole = lowestMicros;
    bucket.part = this.debtCarry;
    return this.forgiven(hits, overMicros);
  }

  deny(bucket: RunningBucket, _ask: BucketOperation, snapshot: TakeSnapshot, nowMicros: number): void {
    // A limited item reports what it found.
    if (snapshot.limited) return;
    this.normalize(bucket, nowMicros);
    snapshot.record(false, bucket);
  }

  toStoredForm(): void {}

  outcome(hits: number, snapshot: TakeSnapshot, nowMicros: number, cached = false): TakeOutcome {
    const { limited, forgiven, fullAtMicros, previousFullAtMicros } = snapshot;
    // What is there, as the time it took to fill: fill - (full at - now). Negative in debt.
    available.whole = this.fillWhole;
    available.part = this.fillCarry;
    subtractFrom(
      available,
      fullAtMicros < 0 ? fullAtMicros : fullAtMicros - nowMicros,
      snapshot.carry,
      this.q,
    );
    const remaining = available.whole < 0 ? 0 : Math.min(this.wholeTokens(available), MAX_UINT32);
    const asked = limited
      ? Math.min(Math.max(hits, 1), this.maxTokens)
      : Math.min(remaining + 1, this.maxTokens);
    let waitMicros = costWhole(this, asked) - available.whole;
    if (costCarry(this, asked) > available.part) waitMicros += 1;
    return {
      limited,
      remaining,
      waitMicros: Math.max(0, waitMicros),
      undoMark: cached
        ? undefined
        : this.maxDebt > 0 || previousFullAtMicros < 0
          ? nowMicros
          : previousFullAtMicros,
      used: Math.max(0, this.maxTokens - remaining),
      forgiven,
      cached,
    };
  }

  countsDenied(): boolean {
    return false;
  }

  get reportedLimit(): number {
    return this.maxTokens;
  }

  reportedUnit(): WindowUnit | undefined {
    if (this.fillCarry !== 0) return undefined;
    return WINDOW_UNITS.find((unit) => UNIT_MICROS[unit] === this.fillWhole);
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

  /**
   * The hits of a charge that a bucket can take on at all, or of a refund that it can take back: no more than capacity,
   * debt, and what it may hold past full.
   */
  chargedHits(hits: number): number {
    return Math.min(hits, this.maxTokens + this.maxDebt + this.maxSurplus);
  }

  /**
   * {@link costWhole} of `hits`; more than the bucket holds cost more than it takes to fill, so that they never fit.
   */
  takeCostWhole(hits: number): number {
    return hits > this.maxTokens ? this.fillWhole + 1 : costWhole(this, hits);
  }

  /** {@link costCarry} of `hits`; see {@link takeCostWhole}. */
  takeCostCarry(hits: number): number {
    return hits > this.maxTokens ? 0 : costCarry(this, hits);
  }

  /**
   * How long, at least, a bucket takes to fill that was limited with `hits` and reported `remaining` and `waitMicros`:
   * these tell its state to less than a microsecond; of what is possible it is the fullest.
   */
  minTimeToFill(hits: number, { remaining, waitMicros }: TakeOutcome): Span {
    const asked = Math.min(Math.max(hits, 1), this.maxTokens);
    // Waits are rounded up, so a whole microsecond less was not enough: room < cost(asked) - (waitMicros - 1).
    const bound: Span = { whole: costWhole(this, asked) - (waitMicros - 1), part: costCarry(this, asked) };
    // Nor was there one token more: room < cost(remaining + 1).
    if (remaining < this.maxTokens) {
      const nextWhole = costWhole(this, remaining + 1);
      const nextCarry = costCarry(this, remaining + 1);
      if (exceeds(bound, nextWhole, nextCarry)) {
        bound.whole = nextWhole;
        bound.part = nextCarry;
      }
    }
    // The largest room below that bound, and from it what is missing.
    subtractFrom(bound, 0, 1, this.q);
    const missing: Span = { whole: this.fillWhole, part: this.fillCarry };
    subtractFrom(missing, bound.whole, bound.part, this.q);
    return missing;
  }

  /** Brings the state into the terms of this rate, and within its bounds. Returns whether it was below these. */
  private normalize(bucket: RunningBucket, nowMicros: number): boolean {
    const isCut = this.clamp(bucket, nowMicros);
    bucket.previousFullAtMicros = bucket.fullAtMicros;
    return isCut;
  }

  private clamp(bucket: RunningBucket, nowMicros: number): boolean {
    if (bucket.unit <= 0) {
      bucket.setState(this.q, nowMicros, 0);
      return false;
    }
    if (bucket.unit !== this.q) {
      // Another limit was in force: its carry counts in other parts, so it is rounded against the caller.
      bucket.setState(this.q, bucket.part > 0 ? bucket.whole + 1 : bucket.whole, 0);
    }
    if (exceeds(bucket, nowMicros + this.debtWhole, this.debtCarry)) {
      bucket.whole = nowMicros + this.debtWhole;
      bucket.part = this.debtCarry;
      if (!bucket.dirty) bucket.repair();
      return true;
    }
    if (bucket.whole < nowMicros && (bucket.whole >= 0 || bucket.surplusEndMicros <= nowMicros)) {
      bucket.whole = nowMicros;
      bucket.part = 0;
    }
    return false;
  }

  /** See TakeItem. */
  private refund(bucket: RunningBucket, operation: BucketOperation, nowMicros: number, isCut: boolean): void {
    const { hits, undoMark, allowSurplus = false } = operation;
    if (undoMark === undefined) {
      const gave = this.addTokens(bucket, hits, allowSurplus ? nowMicros - this.surplusMicros : nowMicros, 0);
      if (allowSurplus && gave) bucket.surplusEndMicros = nowMicros + SURPLUS_LIFETIME_MICROS;
    } else if (isCut || !this.mayUndo(bucket, undoMark)) {
      return;
    } else if (bucket.whole < nowMicros) {
      // It did not refill since, so that nothing would have been spilled.
      this.addTokens(bucket, hits, nowMicros - this.surplusMicros, 0);
    } else this.addTokens(bucket, hits, nowMicros, Math.max(0, nowMicros - undoMark));
  }

  /** Whether neither another limit nor the bound of a debt has cut anything off since the take; see TakeItem. */
  private mayUndo(bucket: RunningBucket, undoMark: number): boolean {
    if (bucket.repaired) return false;
    return this.maxDebt === 0 || !reaches(bucket, undoMark + this.debtWhole, this.debtCarry);
  }

  /**
   * A refund that makes the bucket full at `mostMicros` at the soonest, but for what `spiltMicros` would have refilled.
   * Returns whether it changes anything.
   */
  private addTokens(bucket: RunningBucket, hits: number, mostMicros: number, spiltMicros: number): boolean {
    if (hits === 0 || !exceeds(bucket, mostMicros, 0)) return false;
    const returned = this.chargedHits(hits);
    const whole = costWhole(this, returned) - spiltMicros;
    if (whole < 0) return false;
    subtractFrom(bucket, whole, costCarry(this, returned), this.q);
    if (bucket.fullAtMicros < mostMicros) {
      bucket.whole = mostMicros;
      bucket.part = 0;
    }
    bucket.dirty = true;
    return true;
  }

  /**
   * The tokens of a charge that were forgiven: those past {@link chargedHits}, and what took `overMicros` too long to
   * refill, told to the nearest token, or to those of a microsecond, as buckets refill all the time.
   */
  private forgiven(hits: number, overMicros: number): number {
    const over = Math.round((overMicros * this.q) / this.p);
    return Math.min(hits, hits - this.chargedHits(hits) + over);
  }

  /** floor((whole + part / q) * q / p), exact. */
  private wholeTokens({ whole, part }: Span): number {
    const product = whole * this.q + part;
    if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / this.p);
    return Number((BigInt(whole) * BigInt(this.q) + BigInt(part)) / BigInt(this.p));
  }
}

/**
 * Builds a token bucket rate from already validated numbers: `maxTokens` and `tokensPerFill` integers from 1 to 2^32-1,
 * `fillIntervalMicros` an integer >= 1000, `maxDebt` an integer from 0 to 2^32-1, and a time to fill, from the deepest
 * debt, of at most MAX_FILL_MICROS.
 */
export function tokenBucketRate(
  maxTokens: number,
  tokensPerFill: number,
  fillIntervalMicros: number,
  maxDebt = 0,
): TokenBucketRate {
  return new TokenBucketRate(maxTokens, tokensPerFill, fillIntervalMicros, maxDebt);
}
