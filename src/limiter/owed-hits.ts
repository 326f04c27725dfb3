import type { Rate } from './rate.js';

/** More than the rounding of all that is added up here, in tokens. */
const ROUNDING = 1e-6;

/**
 * What one bucket of the store is owed for the hits that a process admitted without it.
 *
 * Nobody knows what the bucket held when the first of them was admitted, T microseconds ago. It holds C tokens and
 * refills at r a microsecond; this process has the share s of both. With A hits admitted since:
 *
 * - If the bucket was full then, it would now miss B: what a bucket misses that refills at s r and paid for each hit.
 * - If it was not, it would miss all of A beside what it misses now, until it had time to refill: from empty to full
 *   takes C / r, and from then on s r more of A have refilled each microsecond.
 *
 * So max(B, A - max(0, s (r T - C))) is enough, whatever it held: taken from the bucket, down to empty, it leaves no
 * more than if the store had seen every hit. For a bucket that was full it is at most s C above B. As
 * each process counts only the refill of its own share, the sum over all processes is enough as well, if their shares
 * add up to no more than the limit. A window owes what was admitted in it, until it ends.
 */
export class OwedHits {
  /** The whole limit. */
  readonly #rate: Rate;
  /** What one microsecond refills of this process's share, and the share of the capacity. */
  readonly #refill: number;
  readonly #capacity: number;
  /** When the first hit was admitted; of a window its start. */
  #sinceMicros: number;
  #admitted = 0;
  /** B, as of #atMicros. */
  #missing = 0;
  #atMicros: number;

  /** `local`: what this process holds of `rate`. `nowMicros`: the time by the clock that the rate goes by. */
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

  /** Hits were admitted now, or given back. */
  add(hits: number, refund: boolean, nowMicros: number): void {
    this.#advanceTo(nowMicros);
    const change = refund ? -hits : hits;
    this.#admitted = Math.max(0, this.#admitted + change);
    this.#missing = Math.max(0, this.#missing + change);
  }

  /** Hits to take from the bucket now, at most as many as it holds; 0 for none, as then nothing is owed any more. */
  owed(nowMicros: number): number {
    this.#advanceTo(nowMicros);
    if (this.#rate.kind === 'window') return Math.min(this.#admitted, this.#rate.requestsPerUnit);
    const elapsed = Math.max(0, nowMicros - this.#sinceMicros);
    const refilled = Math.max(0, elapsed * this.#refill - this.#capacity);
    const { maxTokens } = this.#rate;
    // No part of a token is in that, and what is missing is never more.
    if (refilled === 0) return Math.min(maxTokens, this.#admitted);
    const owed = Math.max(this.#missing, this.#admitted - refilled);
    return owed <= 0 ? 0 : Math.min(maxTokens, Math.ceil(owed + ROUNDING));
  }

  /** Both are owed: `earlier` is of the same bucket and could not be paid. */
  merge(earlier: OwedHits, nowMicros: number): void {
    this.#advanceTo(nowMicros);
    earlier.#advanceTo(nowMicros);
    if (this.#rate.kind === 'window' && earlier.#sinceMicros !== this.#sinceMicros) return;
    this.#admitted += earlier.#admitted;
    this.#missing += earlier.#missing;
    this.#sinceMicros = Math.min(this.#sinceMicros, earlier.#sinceMicros);
  }

  #advanceTo(nowMicros: number): void {
    if (this.#rate.kind === 'window') {
      const start = startOf(this.#rate, nowMicros);
      if (start === this.#sinceMicros) return;
      this.#sinceMicros = start;
      this.#admitted = 0;
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
