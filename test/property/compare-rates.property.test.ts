import { describe, test } from '@jest/globals';
import fc from 'fast-check';
import { narrowings } from '../../src/config/diff/rule-changes.js';
import { windowRate } from '../../src/limiter/fixed-window.js';
import type { Rate } from '../../src/limiter/rate.js';
import { tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { expectAtLeast, expectSame } from '../support/assert/quick-expect.js';
import { runs } from '../support/assert/runs.js';

const SECOND = 1_000_000;

const rateNarrowings = (before: Rate, after: Rate) =>
  narrowings({ rate: before, hold: undefined }, { rate: after, hold: undefined });

/**
 * A direct implementation of a rate's definition: computes how many hits are allowed at a time after earlier takes. A
 * token bucket counts in units in which it fills by a whole number per microsecond.
 */
class Model {
  private readonly rate: Rate;
  /** Size of a token, units that are added per microsecond, and maximum. */
  private readonly token: bigint;
  private readonly perMicro: bigint;
  private readonly full: bigint;
  private level: bigint;
  private at = 0;
  private window = -1;
  private used = 0;

  constructor(rate: Rate) {
    this.rate = rate;
    const { refillNumerator, refillDenominator, maxTokens } =
      rate.kind === 'token_bucket' ? rate : { refillNumerator: 0, refillDenominator: 1, maxTokens: 0 };
    this.token = BigInt(refillNumerator);
    this.perMicro = BigInt(refillDenominator);
    this.full = BigInt(maxTokens) * this.token;
    this.level = this.full;
  }

  /** Returns the hits that would be allowed at `micros`, which never decreases from call to call. */
  available(micros: number): number {
    const { rate } = this;
    if (rate.kind === 'window') {
      const window = Math.floor(micros / rate.lengthMicros);
      if (window !== this.window) this.used = 0;
      this.window = window;
      return rate.requestsPerUnit - this.used;
    }
    if (this.level < this.full) {
      this.level += BigInt(micros - this.at) * this.perMicro;
      if (this.level > this.full) this.level = this.full;
    }
    this.at = micros;
    return Number(this.level / this.token);
  }

  /** Returns when a token bucket has its next token, but no time before the latest call of {@link available}. */
  nextToken(): number {
    const missing = this.token - this.level;
    return missing <= 0n ? this.at : this.at + Number((missing + this.perMicro - 1n) / this.perMicro);
  }

  take(hits: number): void {
    if (this.rate.kind === 'window') this.used += hits;
    else this.level -= BigInt(hits) * this.token;
  }
}

const small = fc.integer({ min: 1, max: 6 });
const rate: fc.Arbitrary<Rate> = fc.oneof(
  fc.tuple(small, small, small).map(([max, fill, seconds]) => tokenBucketRate(max, fill, seconds * SECOND)),
  fc.tuple(small, small).map(([n, multiplier]) => windowRate('second', n, { multiplier })),
  fc.constant(windowRate('second', 0)),
);

/**
 * Returns whether `after` denies hits that `before` allows, if a caller takes all available hits at the start and the
 * end of each second, beginning with the second `start`.
 */
function deniesOfAll(before: Rate, after: Rate, start: number): boolean {
  const [old, now] = [new Model(before), new Model(after)];
  for (let second = start; second < start + 200; second++) {
    for (const micros of [second * SECOND, (second + 1) * SECOND - 1]) {
      const hits = old.available(micros);
      if (hits > now.available(micros)) return true;
      old.take(hits);
      now.take(hits);
    }
  }
  return false;
}

describe('narrowings', () => {
  test('are empty if no sequence of requests is denied', () => {
    const steps = fc.array(
      fc.record({ wait: fc.nat(3 * SECOND), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
      {
        maxLength: 40,
      },
    );
    fc.assert(
      fc.property(rate, rate, steps, (before, after, sequence) => {
        fc.pre(rateNarrowings(before, after).length === 0);
        const [old, now] = [new Model(before), new Model(after)];
        let micros = 0;
        for (const { wait, share } of sequence) {
          micros += wait;
          const hits = Math.ceil(old.available(micros) * share);
          expectAtLeast(now.available(micros), hits);
          old.take(hits);
          now.take(hits);
        }
      }),
      runs(2000),
    );
  });

  test('are not empty if some sequence is denied, and only then if the rates can be compared', () => {
    fc.assert(
      fc.property(rate, rate, (before, after) => {
        const starts = Array.from({ length: 60 }, (_, start) => start);
        // The next window begins one microsecond after the last microsecond of a second, so that a caller can take the
        // hits of two windows.
        const denies =
          deniesAtTokens(before, after) ||
          starts.some((start) => deniesOfAll(before, after, start) || deniesLate(before, after, start));
        const found = rateNarrowings(before, after);
        expectSame(found.length > 0, denies || found.includes('other_kind'));
      }),
      {
        ...runs(400),
        examples: [
          [tokenBucketRate(1, 2, SECOND), tokenBucketRate(1, 4, 3 * SECOND)],
          [tokenBucketRate(1, 3, 2 * SECOND), tokenBucketRate(2, 3, 3 * SECOND)],
        ],
      },
    );
  });
});

/** Variant of {@link deniesOfAll} that takes each token as soon as it is added, which may be within a second. */
function deniesAtTokens(before: Rate, after: Rate): boolean {
  if (before.kind !== 'token_bucket') return false;
  const [old, now] = [new Model(before), new Model(after)];
  // Rates this small differ by at least one thirtieth, and buckets contain up to six tokens.
  for (let token = 0; token < 400; token++) {
    const micros = old.nextToken();
    const hits = old.available(micros);
    if (hits > now.available(micros)) return true;
    old.take(hits);
    now.take(hits);
  }
  return false;
}

/**
 * Variant of {@link deniesOfAll} that takes only in the last microsecond of the first second, and one microsecond
 * later.
 */
function deniesLate(before: Rate, after: Rate, start: number): boolean {
  const [old, now] = [new Model(before), new Model(after)];
  const end = (start + 1) * SECOND;
  for (const micros of [end - 1, end]) {
    const hits = old.available(micros);
    if (hits > now.available(micros)) return true;
    old.take(hits);
    now.take(hits);
  }
  return false;
}
