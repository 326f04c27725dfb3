import type { Rate } from './rate.js';

/** Tolerance in tokens that exceeds the accumulated rounding error. */
const ROUNDING = 1e-6;

/**
 * Computes how many hits one bucket of the store is owed for hits that a process allowed without the store.
 *
 * The state of the bucket T microseconds ago, when the first of these hits was allowed, is unknown. The bucket holds C
 * tokens and refills r tokens a microsecond; this process enforces the share s of both. If A hits were allowed since:
 *
 * - If the bucket was full then, it would now miss B tokens: those missing from a bucket that started full, refills at
 *   s r, and paid for each hit.
 * - If the bucket was not full, it would miss A tokens in addition to those it misses now. A refill from empty to full
 *   takes C / r; after that time, s r tokens of A refill each microsecond.
 *
 * Therefore max(B, A - max(0, s (r T - C))) is enough in both cases. Once that many tokens are taken, down to empty,
 * the bucket holds no more than if the store had seen every hit. For a bucket that was full, the result exceeds B by at
 * most s C. Each process counts only the refill of its share. The sum over all processes is therefore also enough if
 * their shares add up to at most the limit. For a window, the result is the number of hits that were allowed in the
 * current window.
 */
export class OwedHits {
  /** The rate of the whole limit. */
  readonly #rate: Rate;
  /** Tokens that this process's share refills in one microsecond, and the share of the capacity. */
  readonly #refill: number;
  readonly #capacity: number;
  /** When the first hit was allowed. For a window: the start of the window. */
  #sinceMicros: number;
  #admitted = 0;
  /** Hits that the store was charged for the current window. Unused for a token bucket. */
  #paid = 0;
  /** B, as of #atMicros. */
  #missing = 0;
  #atMicros: number;

  /**
   * `local`: the part of `rate` that this process enforces. `nowMicros`: the current time on the clock of the rate.
   */
  constructor(rate: Rate, local: Rate, nowMicros: number) {
    this.#rate = rate;
    this.#atMicros = nowMicros;
    if (rate.kind === 'token_bucket' && local.kind === 'token_bucket') {
      this.#refill = local.q / local.p;
      this.#capacity = (rate.maxTokens * this.#refill * rate.p) / rate.q;
      this.#sinceMicros = nowMicros;
    } else {
      this.#refill = 0;
      this.#capacity = 0;
      this.#sinceMicros = startOf(rate, nowMicros);
    }
  }

  /** Adds hits that were allowed now, or subtracts refunded hits. */
  add(hits: number, refund: boolean, nowMicros: number): void {
    this.#advanceTo(nowMicros);
    const change = refund ? -hits : hits;
    this.#admitted = Math.max(0, this.#admitted + change);
    this.#missing = Math.max(0, this.#missing + change);
  }

  /** Notes that a window in the store was charged `hits`. Negative hits were given back. */
  pay(hits: number, nowMicros: number): void {
    this.#advanceTo(nowMicros);
    this.#paid += hits;
  }

  /** Whether a charge of the current window could still be given back. */
  isPaid(nowMicros: number): boolean {
    this.#advanceTo(nowMicros);
    return this.#paid > 0;
  }

  /**
   * Returns the hits to take from the bucket now, at most its capacity. 0 means that nothing is owed any more. Negative
   * hits must be given back, because a window was charged more than was allowed.
   */
  owed(nowMicros: number): number {
    this.#advanceTo(nowMicros);
    if (this.#rate.kind === 'window')
      return Math.min(this.#admitted, this.#rate.requestsPerUnit) - this.#paid;
    // A request that was in flight owes nothing.
    if (this.#rate.kind === 'concurrency') return 0;
    const elapsed = Math.max(0, nowMicros - this.#sinceMicros);
    const refilled = Math.max(0, elapsed * this.#refill - this.#capacity);
    const { maxTokens } = this.#rate;
    // The value is exact without rounding, and B is never larger.
    if (refilled === 0) return Math.min(maxTokens, this.#admitted);
    const owed = Math.max(this.#missing, this.#admitted - refilled);
    return owed <= 0 ? 0 : Math.min(maxTokens, Math.ceil(owed + ROUNDING));
  }

  /** Adds what `earlier` owes for the same bucket, because it could not be paid. */
  merge(earlier: OwedHits, nowMicros: number): void {
    this.#advanceTo(nowMicros);
    earlier.#advanceTo(nowMicros);
    if (this.#rate.kind === 'window' && earlier.#sinceMicros !== this.#sinceMicros) return;
    this.#admitted += earlier.#admitted;
    this.#paid += earlier.#paid;
    this.#missing += earlier.#missing;
    this.#sinceMicros = Math.min(this.#sinceMicros, earlier.#sinceMicros);
  }

  #advanceTo(nowMicros: number): void {
    if (this.#rate.kind === 'window') {
      const start = startOf(this.#rate, nowMicros);
      if (start === this.#sinceMicros) return;
      this.#sinceMicros = start;
      this.#admitted = 0;
      this.#paid = 0;
      return;
    }
    const elapsed = Math.max(0, nowMicros - this.#atMicros);
    this.#missing = Math.max(0, this.#missing - elapsed * this.#refill);
    this.#atMicros = nowMicros;
  }
}

function startOf(rate: Rate, nowMicros: number): number {
  return rate.kind === 'window' ? rate.startOf(nowMicros) : nowMicros;
}
