import type { Rate, TimedRate } from '../../../src/limiter/rate.js';
import { refillWhole } from '../../../src/limiter/token-bucket.js';
import { expectAtLeast, expectAtMost, expectSame } from '../assert/quick-expect.js';

/** A change that a server made to one bucket for one item of a call, in the order of the changes. */
export interface Entry {
  readonly atMicros: number;
  readonly hits: number;
  /**
   * `take`: taken or counted for a request that its partition allowed. `denied`: counted by a window for a
   * request that its partition denied. `refund`: refunded by a caller. `return`: the give-back of a `take`.
   */
  readonly kind: 'take' | 'denied' | 'refund' | 'return';
  /** Id of the request. */
  readonly request: unknown;
  /** The `take` that a `return` gives back. */
  readonly undoes?: Entry;
}

/** Final state of a `take`, known once all calls have settled. */
export type FinalState = 'admitted' | 'returned' | 'lost' | 'kept';

/** A bucket of the model. */
class ModelBucket {
  readonly #rate: TimedRate;
  /** Time at which a token bucket is full, or the start of a window and its count. */
  #whole = 0;
  #count = 0;

  constructor(rate: Rate) {
    this.#rate = rate as TimedRate;
  }

  /**
   * Returns the start of the window that counted, or the time at which the token bucket would have been full without
   * the take.
   */
  take(atMicros: number, hits: number): number {
    this.#moveTo(atMicros);
    const mark = this.#whole;
    if (this.#rate.kind === 'window') this.#count += hits;
    else this.#whole += refillWhole(this.#rate, hits);
    return mark;
  }

  /**
   * Reverses a take that left `mark`. A window gives the hits back only if it is the one that counted them. A token
   * bucket gives back all but the tokens that it refilled after the time at which it would have been full without the
   * take. Returns the micro-tokens that are lost in this way.
   */
  undo(atMicros: number, hits: number, mark: number): number {
    this.#moveTo(atMicros);
    if (this.#rate.kind === 'window') {
      if (mark === this.#whole) this.#count = Math.max(0, this.#count - hits);
      return 0;
    }
    const cost = refillWhole(this.#rate, hits);
    const spilt = Math.min(cost, Math.max(0, atMicros - mark));
    this.#whole = Math.max(atMicros, this.#whole - (cost - spilt));
    return spilt;
  }

  refund(atMicros: number, hits: number): void {
    this.#moveTo(atMicros);
    if (this.#rate.kind === 'window') this.#count = Math.max(0, this.#count - hits);
    else this.#whole = Math.max(atMicros, this.#whole - refillWhole(this.#rate, hits));
  }

  /** Used micro-tokens or hits. */
  used(atMicros: number): number {
    this.#moveTo(atMicros);
    return this.#rate.kind === 'window' ? this.#count : this.#whole - atMicros;
  }

  #moveTo(atMicros: number): void {
    const rate = this.#rate;
    if (rate.kind === 'token_bucket') {
      this.#whole = Math.max(this.#whole, atMicros);
      return;
    }
    const start = rate.startOf(atMicros);
    if (start !== this.#whole) this.#count = 0;
    this.#whole = start;
  }
}

/**
 * All changes to one bucket on one server, with their possible results. A token takes a whole number of microseconds.
 */
export class BucketLedger {
  readonly rate: TimedRate;
  readonly entries: Entry[] = [];

  constructor(rate: Rate) {
    this.rate = rate as TimedRate;
  }

  /**
   * Compares the model with the entries. `used` is the server's final value, as a peek reports it; `fateOf` returns the
   * final state of a take. Returns the number of lost hits.
   */
  check(nowMicros: number, used: number, fateOf: (entry: Entry) => FinalState): number {
    /** The model with only the allowed takes. */
    const ideal = new ModelBucket(this.rate);
    /** The model with all takes that were not given back. */
    const expected = new ModelBucket(this.rate);
    /** The model with all changes. */
    const complete = new ModelBucket(this.rate);
    const marks = new Map<Entry | undefined, number>();
    let lost = 0;
    let created = 0;
    let spilt = 0;
    for (const entry of this.entries) {
      const { atMicros, hits, kind, undoes } = entry;
      if (kind === 'return') {
        created += this.#createdBy(entry);
        spilt += complete.undo(atMicros, hits, marks.get(undoes) ?? Number.NaN);
      }
      if (kind === 'refund') for (const bucket of [ideal, expected, complete]) bucket.refund(atMicros, hits);
      if (kind !== 'take' && kind !== 'denied') continue;
      marks.set(entry, complete.take(atMicros, hits));
      const fate = kind === 'denied' ? 'kept' : fateOf(entry);
      if (fate === 'lost') lost += hits;
      if (fate !== 'returned') expected.take(atMicros, hits);
      if (fate !== 'admitted') continue;
      ideal.take(atMicros, hits);
      expectAtMost(ideal.used(atMicros), this.#inTerms(this.rate.reportedLimit) + created);
    }
    expectSame(used, this.#asReported(complete.used(nowMicros)));
    const truth = expected.used(nowMicros);
    // The server reports at most the expected usage and the tokens that give-backs lost because the bucket was full.
    expectAtLeast(used, this.#asReported(truth - created));
    expectAtMost(used, this.#asReported(truth + spilt));
    return lost;
  }

  /**
   * Returns the maximum number of tokens or hits that a give-back may have created, compared with a bucket without the
   * take and the give-back. The sources are callers' refunds since the take, and refills, if give-backs of earlier
   * takes filled the bucket before the time in the take's mark.
   */
  #createdBy({ undoes, atMicros, hits, request }: Entry): number {
    if (undoes === undefined) return 0;
    const elapsed = this.rate.kind === 'window' ? 0 : atMicros - undoes.atMicros;
    const taken = this.entries.indexOf(undoes);
    let refunded = 0;
    let returned = 0;
    for (let i = taken; this.entries[i]?.undoes !== undoes; i++) {
      const entry = this.entries[i] as Entry;
      if (entry.kind === 'refund') refunded += this.#inTerms(entry.hits);
      const isOther = entry.kind === 'return' && entry.request !== request;
      if (isOther && this.entries.indexOf(entry.undoes as Entry) < taken)
        returned += this.#inTerms(entry.hits);
    }
    return Math.min(this.#inTerms(hits), refunded + Math.min(returned, elapsed));
  }

  #inTerms(hits: number): number {
    return this.rate.kind === 'window' ? hits : refillWhole(this.rate, hits);
  }

  /** Returns the used amount that a peek reports. */
  #asReported(used: number): number {
    if (this.rate.kind === 'window') return Math.max(0, used);
    return Math.max(0, Math.ceil(used / refillWhole(this.rate, 1)));
  }
}
