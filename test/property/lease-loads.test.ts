/*
 * Three replicas with leases decide random requests, beside one exact bucket: with any load, they allow as many
 * requests (G5), and most of the requests need no trip to Redis. Clock and random numbers are those of the test.
 */
import { expect, test } from '@jest/globals';
import type { TakeOutcome, TakeResult } from '../../src/limiter/bucket-store.js';
import { windowRate } from '../../src/limiter/fixed-window.js';
import type { Rate } from '../../src/limiter/rate.js';
import { tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { LEASE_MAX } from '../../src/policy/leases.js';
import { LeaseStore } from '../../src/storage/leases.js';
import { MemoryStore } from '../../src/storage/memory/memory-store.js';
import { FakeClock } from '../support/clock/fake-clock.js';
import { seededRandom } from '../support/limiter/seeded-random.js';
import { SlowStore } from '../support/limiter/slow-store.js';
import { MEMORY } from '../support/limiter/store-options.js';
import { takeItem } from '../support/limiter/take-items.js';

const REFILL = 15_000;
const SECOND = 1_000_000;
const SECONDS = 2;
const LEASE = { forMicros: 50_000, max: LEASE_MAX.default };
/** The smallest bucket of which at most half refills during a lease. */
const BUCKET = tokenBucketRate(1500, REFILL, SECOND, 0, undefined, LEASE);
/** Half of each window is shorter than the life of a lease. */
const WINDOW = windowRate('second', 3000, {
  lease: { ...LEASE, forMicros: SECOND / 2 },
  countsOnlyAllowed: true,
});
const REPLICAS = 3;
/** Replies of the store arrive at multiples of this time. */
const REPLY_MICROS = 300;

/** Result of a load. */
interface Counts {
  readonly requests: number;
  readonly trips: number;
  readonly allowed: number;
  /** Number of requests that one exact bucket allows. */
  readonly exact: number;
}

/** Sends requests at random times for {@link SECONDS}. The n-th caller sends 1/n as many requests as the first one. */
async function play(perSecond: number, callers: number, rate: Rate = BUCKET): Promise<Counts> {
  const clock = new FakeClock();
  const store = new SlowStore(clock);
  const exact = new MemoryStore({ ...MEMORY, clock });
  const replicas = Array.from(
    { length: REPLICAS },
    () => new LeaseStore({ store, monotonicMicros: () => clock.monotonicMicros() }),
  );
  const random = seededRandom(57);
  const shares = Array.from({ length: callers }, (_, i) => 1 / (i + 1));
  const total = shares.reduce((sum, share) => sum + share, 0);
  const results: (TakeResult | Promise<TakeResult>)[] = [];
  const isAllowed = (result: TakeResult): boolean => !(result as readonly TakeOutcome[])[0]!.overLimit;
  let [atMicros, exactCount, joined] = [0, 0, 0];
  for (let micros = 0; ; micros += (-Math.log(1 - random()) * SECOND) / perSecond) {
    if (micros > SECONDS * SECOND) break;
    for (
      let next = atMicros + REPLY_MICROS - (atMicros % REPLY_MICROS);
      next <= micros;
      next += REPLY_MICROS
    ) {
      clock.advance(next - atMicros);
      atMicros = next;
      await store.answer();
    }
    clock.advance(Math.floor(micros) - atMicros);
    atMicros = Math.floor(micros);
    let [caller, part] = [0, random() * total];
    while (caller < callers - 1 && part >= shares[caller]!) part -= shares[caller++]!;
    const item = takeItem(`caller${caller}`, rate);
    if (isAllowed(exact.take([item]))) exactCount++;
    const before = store.asked.length;
    results.push(replicas[Math.floor(random() * REPLICAS)]!.take([item], Infinity));
    // A request and the lease that it asks for are sent in one call.
    if (store.asked.length > before + 1) joined++;
  }
  let allowed = -1;
  const counted = Promise.all(results).then((all) => {
    allowed = all.filter(isAllowed).length;
  });
  while (allowed < 0) {
    clock.advance(REPLY_MICROS);
    await store.answer();
    await new Promise(setImmediate);
  }
  await counted;
  return { requests: results.length, trips: store.asked.length - joined, allowed, exact: exactCount };
}

test('G5: a caller with fewer than four requests during a lease is decided as without leases', async () => {
  const { requests, trips, allowed, exact } = await play(10, 1);
  expect({ trips, allowed }).toEqual({ trips: requests, allowed: exact });
});

test.each([50, 95, 150, 200, 300])(
  'G5: at %i % of the limit, they allow as many, within 1 %',
  async (percent) => {
    const { allowed, exact } = await play((REFILL * percent) / 100, 1);
    expect(Math.abs(allowed - exact)).toBeLessThanOrEqual(0.01 * exact);
  },
);

test.each([50, 95, 100, 150])(
  'G5: at %i % of the limit of a short window, they allow as many, within 1 %',
  async (percent) => {
    const { requests, trips, allowed, exact } = await play(30 * percent, 1, WINDOW);
    expect(Math.abs(allowed - exact)).toBeLessThanOrEqual(0.01 * exact);
    expect((100 * trips) / requests).toBeLessThanOrEqual(10);
  },
);

test.each([
  ['a hot caller at 95 % of its limit needs 1 trip', 0.95 * REFILL, 1, 1],
  ['a hot caller at double its limit needs 1 trip', 2 * REFILL, 1, 1],
  [
    '100 callers, of which the n-th sends 1/n of the requests of the first one, need 40 trips',
    2 * REFILL,
    100,
    40,
  ],
])('%s for 100 requests, at most', async (_, perSecond, callers, most) => {
  const { requests, trips } = await play(perSecond, callers);
  expect((100 * trips) / requests).toBeLessThanOrEqual(most);
});
