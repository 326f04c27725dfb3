import { describe, test } from '@jest/globals';
import fc from 'fast-check';
import { narrowings } from '../../src/config/diff/compare-rates.js';
import { windowRate } from '../../src/limiter/fixed-window.js';
import type { Rate } from '../../src/limiter/rate.js';
import { tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { expectAtLeast, expectSame } from '../support/assert/quick-expect.js';
import { runs } from '../support/assert/runs.js';

const SECOND = 1_000_000;

/**
 * The definition of a rate, literally: how many hits pass at an instant, given those that passed. In thousandths of a
 * token a microsecond.
 */
class Model {
  private readonly rate: Rate;
  /** What a token takes, what comes in a microsecond, and what there may be. */
  private readonly token: bigint;
  private readonly perMicro: bigint;
  private readonly full: bigint;
  private level: bigint;
  private at = 0;
  private window = -1;
  private used = 0;

  constructor(rate: Rate) {
    this.rate = rate;
    const { p, q, maxTokens } = rate.kind === 'token_bucket' ? rate : { p: 0, q: 1, maxTokens: 0 };
    this.token = BigInt(p);
    this.perMicro = BigInt(q);
    this.full = BigInt(maxTokens) * this.token;
    this.level = this.full;
  }

  /** Hits that would pass at `micros`, which never goes back. */
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

  /** The first instant at which one more is there, of a token bucket; not before it was looked at last. */
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
 * Whether `after` denies something of what `before` lets pass when it is asked for all it has, at each turn of a
 * second, from `start` on.
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
  test('says nothing where no sequence of requests is denied', () => {
    const steps = fc.array(
      fc.record({ wait: fc.nat(3 * SECOND), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
      {
        maxLength: 40,
      },
    );
    fc.assert(
      fc.property(rate, rate, steps, (before, after, sequence) => {
        fc.pre(narrowings(before, after).length === 0);
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

  test('says why exactly where some sequence is', () => {
    fc.assert(
      fc.property(rate, rate, (before, after) => {
        const starts = Array.from({ length: 60 }, (_, start) => start);
        // A second later than its last microsecond the next window begins: there two windows' worth come at once.
        const denies =
          deniesAtTokens(before, after) ||
          starts.some((start) => deniesOfAll(before, after, start) || deniesLate(before, after, start));
        expectSame(narrowings(before, after).length > 0, denies);
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

/**
 * As {@link deniesOfAll}, but all is asked for as each token of a bucket comes back, which may be between two turns of
 * a second.
 */
function deniesAtTokens(before: Rate, after: Rate): boolean {
  if (before.kind !== 'token_bucket') return false;
  const [old, now] = [new Model(before), new Model(after)];
  // Rates as small as these differ by a thirtieth at least, and buckets hold up to six.
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
 * As {@link deniesOfAll}, but nothing is asked before the last microsecond of the first second, and then only where it
 * ends.
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
