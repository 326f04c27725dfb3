/*
 * The store is charged for hits that were allowed without it. The charges are never too low, for any state of the
 * bucket.
 */

import { describe, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import { chargingRate, localRate } from '../../../src/limiter/local-rate.js';
import { OwedHits } from '../../../src/limiter/owed-hits.js';
import type { Rate } from '../../../src/limiter/rate.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { expectAtMost } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { arbitraryHits, arbitraryRate, arbitrarySpan } from '../../support/limiter/arbitrary-takes.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { takeItem } from '../../support/limiter/take-items.js';

jest.setTimeout(60_000);

const outages = arbitraryRate().chain((rate) =>
  fc.record({
    rate: fc.constant<Rate>(rate),
    /** Number of tokens that are missing from the bucket at the start. */
    missing: arbitraryHits(rate),
    processes: fc.integer({ min: 1, max: 3 }),
    steps: fc.array(
      fc.record({
        wait: arbitrarySpan(rate),
        process: fc.integer({ min: 0, max: 2 }),
        hits: fc.oneof(
          fc.integer({ min: 1, max: 5 }),
          fc.integer({ min: 1, max: Math.max(1, rate.maxTokens) }),
        ),
        refund: fc.integer({ min: 0, max: 9 }).map((chance) => chance === 0),
      }),
      { minLength: 1, maxLength: 30 },
    ),
    until: arbitrarySpan(rate),
  }),
);

class Outage {
  readonly clock = new FakeClock();
  readonly #store = new MemoryStore({ ...MEMORY, clock: this.clock });
  readonly #charging: Rate;
  readonly #rate: Rate;

  constructor(rate: Rate, missing: number) {
    this.#rate = rate;
    this.#charging = chargingRate(rate);
    this.charge('seen', missing);
    this.charge('stored', missing);
  }

  get nowMicros(): number {
    return this.#rate.byWallClock ? this.clock.wall : this.clock.monotonic;
  }

  charge(key: string, hits: number, refund = false): void {
    if (hits === 0) return;
    this.#store.take([takeItem(key, refund ? this.#rate : this.#charging, { hits, refund })]);
  }

  remaining(key: string): number {
    return this.#store.take([takeItem(key, this.#rate, { hits: 0 })])[0]?.remaining as number;
  }
}

describe('owed hits', () => {
  test('leave a token bucket with at most the tokens of a bucket that counted all hits of all processes', () => {
    fc.assert(
      fc.property(outages, ({ rate, missing, processes, steps, until }) => {
        const outage = new Outage(rate, missing);
        const owed: (OwedHits | undefined)[] = [];
        const local = localRate(rate, 1 / processes, 1);
        for (const { wait, process, hits, refund } of steps) {
          outage.clock.advance(wait);
          const at = process % processes;
          if (refund && owed[at] === undefined) continue;
          owed[at] ??= new OwedHits(rate, local, outage.nowMicros);
          owed[at].add(hits, refund, outage.nowMicros);
          outage.charge('seen', hits, refund);
        }
        outage.clock.advance(until);
        for (const one of owed) outage.charge('stored', one?.owed(outage.nowMicros) ?? 0);
        expectAtMost(outage.remaining('stored'), outage.remaining('seen'));
      }),
      runs(2000),
    );
  });

  test('cost a token bucket at most a share of the limit more than the share lacks', () => {
    fc.assert(
      fc.property(outages, ({ rate, processes, steps, until }) => {
        const clock = new FakeClock();
        const local = localRate(rate, 1 / processes, 1);
        const store = new MemoryStore({ ...MEMORY, clock });
        let owed: OwedHits | undefined;
        for (const { wait, hits } of steps) {
          clock.advance(wait);
          if (store.take([takeItem('k', local, { hits })])[0]?.limited === true) continue;
          owed ??= new OwedHits(rate, local, clock.monotonic);
          owed.add(hits, false, clock.monotonic);
        }
        clock.advance(until);
        const left = store.take([takeItem('k', local, { hits: 0 })])[0]?.remaining as number;
        const share = Math.max(1, rate.reportedLimit / processes);
        expectAtMost(owed?.owed(clock.monotonic) ?? 0, local.reportedLimit - left + Math.ceil(share) + 1);
      }),
      runs(2000),
    );
  });

  test('of a window are the hits that it allowed, and zero after it has ended', () => {
    const minute = 60_000_000;
    const step = fc.record({
      wait: fc.integer({ min: 0, max: minute }),
      hits: fc.integer({ min: 1, max: 9 }),
    });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 0, max: 20 }),
        fc.array(step),
        (limit, missing, steps) => {
          const rate = windowRate('minute', limit);
          const outage = new Outage(rate, missing);
          const owed = new OwedHits(rate, rate, outage.nowMicros);
          for (const { wait, hits } of steps) {
            outage.clock.advance(wait);
            owed.add(hits, false, outage.nowMicros);
            outage.charge('seen', hits);
          }
          outage.charge('stored', owed.owed(outage.nowMicros));
          expectAtMost(outage.remaining('stored'), outage.remaining('seen'));
          expectAtMost(outage.remaining('seen'), outage.remaining('stored'));
          outage.clock.advance(minute);
          expectAtMost(owed.owed(outage.nowMicros), 0);
        },
      ),
    );
  });
});
