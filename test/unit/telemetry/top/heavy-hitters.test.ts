import { expect, test } from '@jest/globals';
import { HeavyHitters } from '../../../../src/telemetry/top/heavy-hitters.js';
import { seededRandom } from '../../../support/limiter/seeded-random.js';

const CAPACITY = 50;

interface Counts {
  readonly sketch: HeavyHitters<string>;
  readonly exact: Map<string, number>;
  readonly total: number;
}

/** Counts the results of `next` in a sketch, and exactly. */
function counted(calls: number, next: (call: number) => readonly [key: string, count: number]): Counts {
  const sketch = new HeavyHitters<string>(CAPACITY);
  const exact = new Map<string, number>();
  let total = 0;
  for (let call = 0; call < calls; call++) {
    const [key, count] = next(call);
    sketch.add(key, key, count);
    exact.set(key, (exact.get(key) ?? 0) + count);
    total += count;
  }
  return { sketch, exact, total };
}

/** Checks the guarantees of the algorithm, which hold for any traffic. */
function expectKept({ sketch, exact, total }: Counts): void {
  const bound = total / (CAPACITY + 1);
  expect(sketch.floor).toBeLessThanOrEqual(bound);
  expect(sketch.kept.size).toBeLessThan(2 * CAPACITY);
  const wrong = [...exact].filter(([key, truth]) => {
    const kept = sketch.kept.get(key);
    if (kept === undefined) return truth > sketch.floor;
    return kept.count < truth || kept.count - kept.error > truth || kept.error > bound;
  });
  expect(wrong).toEqual([]);
}

/** Returns random numbers of keys. The n-th key has 1/n^skew of the frequency of the first. */
function zipf(keys: number, skew: number, random: () => number): () => number {
  const ends: number[] = [];
  let sum = 0;
  for (let key = 1; key <= keys; key++) {
    sum += key ** -skew;
    ends.push(sum);
  }
  return () => {
    const at = random() * sum;
    let low = 0;
    for (let high = keys - 1; low < high; ) {
      const middle = (low + high) >> 1;
      if ((ends[middle] as number) < at) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}

test('few keys are counted exactly', () => {
  const counts = counted(10_000, (call) => [`key ${call % CAPACITY}`, 1 + (call % 3)]);
  for (const [key, truth] of counts.exact) {
    expect(counts.sketch.kept.get(key)).toEqual({ about: key, count: truth, error: 0 });
  }
  expect(counts.sketch.floor).toBe(0);
});

test.each([0.8, 1, 1.3])(
  'on traffic with skew %d errors stay in their bound, and the first are found',
  (skew) => {
    const draw = zipf(20_000, skew, seededRandom(11));
    const counts = counted(50_000, () => [`key ${draw()}`, 1]);
    expectKept(counts);
    const { sketch, exact, total } = counts;
    const surely = [...exact].filter(([, truth]) => truth > total / (CAPACITY + 1));
    expect(surely.length).toBeGreaterThan(skew < 1 ? 0 : 3);
    for (const [key] of surely) expect(sketch.kept.has(key)).toBe(true);
  },
);

test('errors stay within the bound for uniform traffic', () => {
  const random = seededRandom(12);
  expectKept(counted(50_000, () => [`key ${Math.floor(random() * 5000)}`, 1]));
});

test('keys that occur once do not remove frequent keys', () => {
  expectKept(counted(30_000, (call) => [call % 40 === 0 ? 'steady' : `once ${call}`, 1]));
  const { sketch } = counted(30_000, (call) => [call % 40 === 0 ? 'steady' : `once ${call}`, 1]);
  expect(sketch.kept.has('steady')).toBe(true);
});

test('errors stay within the bound for any counts', () => {
  const random = seededRandom(13);
  for (let round = 0; round < 20; round++) {
    const keys = 1 + Math.floor(random() * 400);
    expectKept(
      counted(2000, () => [`key ${Math.floor(random() * keys)}`, 1 + Math.floor(random() ** 8 * 100_000)]),
    );
  }
});

test('trimming keeps the keys with the highest counts, up to the capacity', () => {
  const { sketch, exact, total } = counted(5000, (call) => [`key ${call % 80}`, 1 + (call % 80)]);
  sketch.trim();
  expect(sketch.kept.size).toBeLessThanOrEqual(CAPACITY);
  expectKept({ sketch, exact, total });
  const { floor } = sketch;
  sketch.trim();
  expect(sketch.floor).toBe(floor);
});
