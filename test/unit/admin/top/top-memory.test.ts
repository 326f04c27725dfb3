import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import { TopCounts } from '../../../../src/admin/top/top-counts.js';
import type { CountedTake } from '../../../../src/service/decision-observer.js';
import { SLICES } from '../../../../src/telemetry/top/sliding-heavy-hitters.js';
import { TopBuckets } from '../../../../src/telemetry/top/top-buckets.js';
import { seededRandom } from '../../../support/limiter/seeded-random.js';
import { entries, policyOf } from '../../../support/policy/policies.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
setFlagsFromString('--no-expose-gc');

const CAPACITY = 50;
/** Maximum bytes per bucket that the help of TOP_BUCKETS states. */
const MOST_BYTES = 80_000;
const SETTLED_BYTES = 20_000;

/** Returns the used heap once it no longer shrinks, because objects of other tests are freed gradually. */
async function heapUsed(): Promise<number> {
  for (let before = Number.POSITIVE_INFINITY; ; ) {
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    const { heapUsed: used } = process.memoryUsage();
    if (before - used < SETTLED_BYTES) return used;
    before = used;
  }
}

/** Fills the last minute and the last hour. */
function filledTop(): TopBuckets {
  const policy = policyOf(
    'domain: d\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 9 } }]\n',
  );
  const match = policy.match(entries('k=v'));
  const [rule] = match.rules;
  const rate = rule?.rate;
  if (rate === undefined) throw new Error('the policy has no limit');
  let micros = 0;
  let callers = 0;
  const top = new TopBuckets({ capacity: CAPACITY, nowMicros: () => micros, random: seededRandom(1) });
  const counts = new TopCounts(top);
  /** Fills the slice of ten seconds, and thereby that of ten minutes. */
  const fill = (): void => {
    for (let at = 0; at < 2 * CAPACITY - 1; at++) {
      const who = `${callers++} ${'й'.repeat(4000)}`;
      const all = entries(
        ...Array.from({ length: 20 }, (_, place) => `${place}${'ж'.repeat(40)}=${who.slice(place)}`),
      );
      const take: CountedTake = {
        key: who.slice(0, 1000),
        rate,
        hits: 1,
        rulePath: 'k',
        rule,
        outcome: undefined,
      };
      const asked = { ...match, entries: all };
      const measure = at % 2 === 0 ? 'denied' : 'used';
      const drawn = counts.samplers[measure].take(1);
      if (drawn > 0) counts.count(measure, drawn, policy, asked, take);
    }
  };
  const pass = (seconds: number): void => {
    for (let at = 0; at < seconds; at += 10) {
      micros += 10_000_000;
      top.tick();
    }
  };
  for (let slice = 0; slice < SLICES; slice++) {
    fill();
    pass(600);
  }
  for (let slice = 0; slice < SLICES; slice++) {
    fill();
    pass(10);
  }
  return top;
}

test('callers with changing long values use no more memory than documented', async () => {
  // The code that it compiles, and the caches that it fills, stay and do not count.
  filledTop();
  const before = await heapUsed();
  let top: TopBuckets | undefined = filledTop();
  expect(top.about('hour').error.denied).toBeGreaterThan(0);
  const full = await heapUsed();
  top = undefined;
  const after = await heapUsed();
  // Objects of other tests may be freed at any time, which decreases one result and increases the other.
  const kept = [full - before, full - after];
  expect(Math.min(...kept)).toBeLessThan(CAPACITY * MOST_BYTES);
  // The filled counters must use memory.
  expect(Math.max(...kept)).toBeGreaterThan(CAPACITY * 5000);
});
