import type { Rate } from '../../../src/limiter/rate.js';
import { costWhole } from '../../../src/limiter/token-bucket.js';
import { expectAtLeast, expectAtMost, expectSame } from '../assert/quick-expect.js';

/** What a server did to one bucket for one item of a call, in the order in which it did it. */
export interface Entry {
  readonly atMicros: number;
  readonly hits: number;
  /**
   * `take`: taken or counted for a request that its part let pass, or for a candidate; `denied`: counted by a window
   * for a request that its part denied; `refund`: given back by a caller; `return`: what undoes a `take`.
   */
  readonly kind: 'take' | 'denied' | 'refund' | 'return';
  /** On whose behalf. */
  readonly request: unknown;
  /** Of a `return` the entry that it undoes. */
  readonly undoes?: Entry;
}

/** What became of a `take`, known once everything has settled. */
export type Fate = 'admitted' | 'returned' | 'lost' | 'kept';

/** A bucket of the model. */
class ModelBucket {
  readonly #rate: Rate;
  /** When a token bucket is full, or the start of a window and what it has counted. */
  #whole = 0;
  #count = 0;

  constructor(rate: Rate) {
    this.#rate = rate;
  }

  /** Returns when the window that counted began, or when the token bucket would have been full without the take. */
  take(atMicros: number, hits: number): number {
    this.#moveTo(atMicros);
    const mark = this.#whole;
    if (this.#rate.kind === 'window') this.#count += hits;
    else this.#whole += costWhole(this.#rate, hits);
    return mark;
  }

  /**
   * Undoes a take that left `mark`: in the window that counted it, or but for what the token bucket has refilled past
   * the time at which it would have been full without. Returns the micro-tokens that so are lost.
   */
  undo(atMicros: number, hits: number, mark: number): number {
    this.#moveTo(atMicros);
    if (this.#rate.kind === 'window') {
      if (mark === this.#whole) this.#count = Math.max(0, this.#count - hits);
      return 0;
    }
    const cost = costWhole(this.#rate, hits);
    const spilt = Math.min(cost, Math.max(0, atMicros - mark));
    this.#whole = Math.max(atMicros, this.#whole - (cost - spilt));
    return spilt;
  }

  refund(atMicros: number, hits: number): void {
    this.#moveTo(atMicros);
    if (this.#rate.kind === 'window') this.#count = Math.max(0, this.#count - hits);
    else this.#whole = Math.max(atMicros, this.#whole - costWhole(this.#rate, hits));
  }

  /** Micro-tokens, or hits, that are used. */
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

/** All that was done to one bucket on one server, and what may come of it. A token takes whole microseconds. */
export class BucketLedger {
  readonly rate: Rate;
  readonly entries: Entry[] = [];

  constructor(rate: Rate) {
    this.rate = rate;
  }

  /**
   * Holds the model against the entries. `used` is what the server says at the end, in the terms of a peek; `fateOf`
   * what became of a take. Returns how many hits were lost.
   */
  check(nowMicros: number, used: number, fateOf: (entry: Entry) => Fate): number {
    /** With what was admitted only, and with all that stays. */
    const ideal = new ModelBucket(this.rate);
    const expected = new ModelBucket(this.rate);
    /** With all that was done. */
    const told = new ModelBucket(this.rate);
    const marks = new Map<Entry | undefined, number>();
    let lost = 0;
    let created = 0;
    let spilt = 0;
    for (const entry of this.entries) {
      const { atMicros, hits, kind, undoes } = entry;
      if (kind === 'return') {
        created += this.#createdBy(entry);
        spilt += told.undo(atMicros, hits, marks.get(undoes) ?? Number.NaN);
      }
      if (kind === 'refund') for (const bucket of [ideal, expected, told]) bucket.refund(atMicros, hits);
      if (kind !== 'take' && kind !== 'denied') continue;
      marks.set(entry, told.take(atMicros, hits));
      const fate = kind === 'denied' ? 'kept' : fateOf(entry);
      if (fate === 'lost') lost += hits;
      if (fate !== 'returned') expected.take(atMicros, hits);
      if (fate !== 'admitted') continue;
      ideal.take(atMicros, hits);
      expectAtMost(ideal.used(atMicros), this.#inTerms(this.rate.reportedLimit) + created);
    }
    expectSame(used, this.#asTold(told.used(nowMicros)));
    const truth = expected.used(nowMicros);
    // Nothing is there that should not be, and nothing is missing but what was lost, or would have been spilled.
    expectAtLeast(used, this.#asTold(truth - created));
    expectAtMost(used, this.#asTold(truth + spilt));
    return lost;
  }

  /**
   * The most that a return may have given beyond what the bucket would have without both: what callers refund in
   * between, and what refills by then, as far as returns of earlier takes make the bucket full sooner than its take
   * could know.
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
    return this.rate.kind === 'window' ? hits : costWhole(this.rate, hits);
  }

  /** What a peek says is used. */
  #asTold(used: number): number {
    if (this.rate.kind === 'window') return Math.max(0, used);
    return Math.max(0, Math.ceil(used / costWhole(this.rate, 1)));
  }
}
