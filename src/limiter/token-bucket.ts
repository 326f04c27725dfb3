import { type Ask, chargesFromOf, type RateAlgorithm } from './rate-algorithm.js';
import type { RunningBucket, TakeFinding } from './running-bucket.js';
import { addTo, exceeds, type Span, subtractFrom } from './span.js';
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
const room: Span = { whole: 0, part: 0 };

/**
 * A token bucket (Envoy's envoy.type.v3.TokenBucket), reduced for exact integer arithmetic (GCRA): its state is the
 * time at which it is full, as a {@link Span}. Buckets lie between full (now) and empty, or the deepest debt (now + the
 * time to fill from there).
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
  readonly chargesFrom: number;
  /** Time a bucket needs to fill from its deepest debt: that of an empty one where there is none. */
  readonly debtWhole: number;
  readonly debtCarry: number;

  /** See {@link tokenBucketRate}. */
  constructor(
    maxTokens: number,
    tokensPerFill: number,
    fillIntervalMicros: number,
    maxDebt: number,
    chargesFrom = chargesFromOf(maxDebt),
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
    this.chargesFrom = chargesFrom;
    this.debtWhole = costWhole(this, maxTokens + maxDebt);
    this.debtCarry = costCarry(this, maxTokens + maxDebt);
  }

  nowOf(tokenMicros: number): number {
    return tokenMicros;
  }

  take(bucket: RunningBucket, { hits, refund }: Ask, nowMicros: number): boolean {
    this.read(bucket, nowMicros);
    if (refund) {
      this.giveBack(bucket, hits, nowMicros);
      return false;
    }
    // A peek asks whether one more token is there.
    const asked = hits === 0 ? 1 : hits;
    const { whole, part } = bucket;
    addTo(bucket, this.askedWhole(asked), this.askedCarry(asked), this.q);
    const limited = exceeds(bucket, nowMicros + this.fillWhole, this.fillCarry);
    if (limited || hits === 0) {
      bucket.whole = whole;
      bucket.part = part;
    } else bucket.dirty = true;
    return limited;
  }

  charge(bucket: RunningBucket, hits: number, nowMicros: number): number {
    this.read(bucket, nowMicros);
    const charged = this.chargedHits(hits);
    addTo(bucket, costWhole(this, charged), costCarry(this, charged), this.q);
    bucket.dirty = true;
    const lowestMicros = nowMicros + this.debtWhole;
    if (!exceeds(bucket, lowestMicros, this.debtCarry)) return this.forgiven(hits, 0);
    const overMicros = bucket.fullAtMicros - lowestMicros;
    bucket.whole = lowestMicros;
    bucket.part = this.debtCarry;
    return this.forgiven(hits, overMicros);
  }

  deny(bucket: RunningBucket, _ask: Ask, finding: TakeFinding, nowMicros: number): void {
    // A limited item reports what it found.
    if (finding.limited) return;
    this.read(bucket, nowMicros);
    finding.note(false, bucket);
  }

  fold(): void {}

  outcome(hits: number, finding: TakeFinding, nowMicros: number, cached = false): TakeOutcome {
    const { limited, forgiven } = finding;
    // What is there, as the time it took to fill: fill - (full at - now). Negative in debt.
    room.whole = this.fillWhole;
    room.part = this.fillCarry;
    subtractFrom(room, finding.fullAtMicros - nowMicros, finding.carry, this.q);
    const remaining = room.whole < 0 ? 0 : this.wholeTokens(room);
    const asked = limited
      ? Math.min(Math.max(hits, 1), this.maxTokens)
      : Math.min(remaining + 1, this.maxTokens);
    let waitMicros = costWhole(this, asked) - room.whole;
    if (costCarry(this, asked) > room.part) waitMicros += 1;
    return {
      limited,
      remaining,
      waitMicros: Math.max(0, waitMicros),
      used: this.maxTokens - remaining,
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

  usedUnseen(): number {
    return this.maxTokens;
  }

  /**
   * The hits of a charge that a bucket can take on at all, or of a refund that it can take back: no more than capacity
   * and debt.
   */
  chargedHits(hits: number): number {
    return Math.min(hits, this.maxTokens + this.maxDebt);
  }

  /**
   * {@link costWhole} of `hits`; more than the bucket holds cost more than it takes to fill, so that they never fit.
   */
  askedWhole(hits: number): number {
    return hits > this.maxTokens ? this.fillWhole + 1 : costWhole(this, hits);
  }

  /** {@link costCarry} of `hits`; see {@link askedWhole}. */
  askedCarry(hits: number): number {
    return hits > this.maxTokens ? 0 : costCarry(this, hits);
  }

  /**
   * How long, at least, a bucket takes to fill that was limited with `hits` and reported `remaining` and `waitMicros`:
   * these tell its state to less than a microsecond; of what is possible it is the fullest.
   */
  leastMissing(hits: number, { remaining, waitMicros }: TakeOutcome): Span {
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

  /** Brings the state into the terms of this rate, and within its bounds. */
  private read(bucket: RunningBucket, nowMicros: number): void {
    if (bucket.unit <= 0) {
      bucket.become(this.q, nowMicros, 0);
      return;
    }
    if (bucket.unit !== this.q) {
      // Another limit was in force: its carry counts in other parts, so it is rounded against the caller.
      bucket.become(this.q, bucket.part > 0 ? bucket.whole + 1 : bucket.whole, 0);
    }
    if (exceeds(bucket, nowMicros + this.debtWhole, this.debtCarry)) {
      bucket.whole = nowMicros + this.debtWhole;
      bucket.part = this.debtCarry;
      if (!bucket.dirty) bucket.repair();
    } else if (bucket.whole < nowMicros) {
      bucket.whole = nowMicros;
      bucket.part = 0;
    }
  }

  /** A refund, up to full. */
  private giveBack(bucket: RunningBucket, hits: number, nowMicros: number): void {
    if (hits === 0 || (bucket.fullAtMicros === nowMicros && bucket.carry === 0)) return;
    const returned = this.chargedHits(hits);
    subtractFrom(bucket, costWhole(this, returned), costCarry(this, returned), this.q);
    if (bucket.fullAtMicros < nowMicros) {
      bucket.whole = nowMicros;
      bucket.part = 0;
    }
    bucket.dirty = true;
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
