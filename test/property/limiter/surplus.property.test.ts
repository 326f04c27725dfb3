import { test } from '@jest/globals';
import fc from 'fast-check';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import { MAX_UINT32, type Rate, type TimedRate } from '../../../src/limiter/rate.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../../src/limiter/window-unit.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { expectAtMost, expectSame } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { AWKWARD_RATES } from '../../support/limiter/arbitrary-takes.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { takeItem } from '../../support/limiter/take-items.js';

const RATES: readonly Rate[] = [
  ...AWKWARD_RATES,
  tokenBucketRate(1, 1, UNIT_MICROS.second),
  tokenBucketRate(10, 3, UNIT_MICROS.second, 5),
  tokenBucketRate(MAX_UINT32, 1, 1_000),
  windowRate('year', 0),
  windowRate('year', 7),
  windowRate('year', 7, { maxDebt: 5 }),
];
const hits = fc.oneof(fc.integer({ min: 0, max: 20 }), fc.constant(Number.MAX_SAFE_INTEGER));
const step = fc.record({
  wait: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: UNIT_MICROS.second })),
  hits,
  kind: fc.constantFrom('take' as const, 'take' as const, 'grant' as const, 'refund' as const),
});

test('a surplus lasts until its last hit, does not refill, and never exceeds its maximum', () => {
  fc.assert(
    fc.property(fc.constantFrom(...RATES), fc.array(step, { maxLength: 40 }), (rate, steps) => {
      const clock = new FakeClock();
      const store = new MemoryStore({ ...MEMORY, clock });
      const ask = (options: Parameters<typeof takeItem>[2]) => {
        const [outcome] = store.take([takeItem('a', rate, options)]);
        expectAtMost(outcome!.remaining, MAX_UINT32);
        expectAtMost(0, outcome!.remaining);
        expectAtMost(0, outcome!.used);
        return outcome!;
      };
      const look = () => ask({ hits: 0, refund: true }).remaining;
      for (const { wait, hits, kind } of steps) {
        const before = look();
        clock.advance(wait);
        const isOver = before > rate.reportedLimit;
        // A bucket with a surplus does not refill.
        if (isOver) expectSame(look(), before);
        const now = look();
        if (kind === 'take') {
          const { limited, remaining, forgiven } = ask({ hits });
          const taken = hits - forgiven;
          if (!limited && isOver) expectSame(remaining, Math.max(0, now - taken));
          if (limited && !rate.countsDenied(MEMORY.countDeniedHits)) expectSame(look(), now);
          if (!limited && forgiven === 0 && rate.maxDebt === 0) expectAtMost(taken, rate.reportedLimit);
        } else {
          const { remaining, limited } = ask({ hits, refund: true, over: kind === 'grant' });
          expectSame(limited, false);
          expectAtMost(now, remaining);
          // The bucket may have held a fraction of a token.
          expectAtMost(remaining, now + hits + 1);
          if (kind === 'refund') expectAtMost(remaining, Math.max(now, rate.reportedLimit));
          else if (isOver)
            expectSame(
              remaining,
              Math.max(now, Math.min(now + hits, rate.reportedLimit + (rate as TimedRate).maxSurplus)),
            );
        }
      }
      // A surplus lasts at most one day.
      clock.advance(rate.kind === 'window' ? 366 * UNIT_MICROS.day : UNIT_MICROS.day);
      expectAtMost(look(), rate.reportedLimit);
    }),
    runs(400),
  );
});
