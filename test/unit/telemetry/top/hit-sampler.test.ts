import { expect, test } from '@jest/globals';
import { HitSampler, SAMPLES_PER_SECOND } from '../../../../src/telemetry/top/hit-sampler.js';
import { seededRandom } from '../../../support/limiter/seeded-random.js';

/** Sends `calls` to the sampler within a second. Returns what it sampled. */
function second(sampler: HitSampler, calls: number, hits = 1): { looked: number; counted: number } {
  let looked = 0;
  let counted = 0;
  for (let call = 0; call < calls; call++) {
    const drawn = sampler.take(hits);
    if (drawn > 0) looked++;
    counted += drawn;
  }
  sampler.adapt(1);
  return { looked, counted };
}

test('a thousand calls per second are all counted, with their hits', () => {
  const sampler = new HitSampler(seededRandom(1));
  for (const hits of [1, 2, 7, 1000, 4_294_967_295, Number.MAX_SAFE_INTEGER]) {
    expect(sampler.take(hits)).toBe(hits);
  }
  sampler.adapt(1);
  expect(second(sampler, SAMPLES_PER_SECOND, 3)).toEqual({ looked: 1000, counted: 3000 });
  expect(sampler.hitsPerSample).toBe(1);
});

test('samples about a thousand calls per second under higher load, immediately and permanently', () => {
  const sampler = new HitSampler(seededRandom(2));
  // The sampler adapts to the rate within the first second.
  expect(second(sampler, 1_000_000).looked).toBeLessThan(12_000);
  for (let at = 0; at < 5; at++) {
    const { looked, counted } = second(sampler, 1_000_000);
    expect(looked).toBeLessThanOrEqual(2 * SAMPLES_PER_SECOND);
    expect(counted).toBeGreaterThan(950_000);
    expect(counted).toBeLessThan(1_050_000);
  }
  expect(sampler.hitsPerSample).toBeGreaterThanOrEqual(512);
});

test('counts every call again within seconds when the load falls', () => {
  const sampler = new HitSampler(seededRandom(3));
  second(sampler, 1_000_000);
  for (let at = 0; at < 3; at++) second(sampler, 10);
  expect(sampler.hitsPerSample).toBe(1);
  expect(second(sampler, 10)).toEqual({ looked: 10, counted: 10 });
});

test('a flood of calls with the maximum hits is not sampled more often than others', () => {
  const sampler = new HitSampler(seededRandom(9));
  second(sampler, 200_000, Number.MAX_SAFE_INTEGER);
  second(sampler, 200_000, Number.MAX_SAFE_INTEGER);
  const { looked, counted } = second(sampler, 200_000, Number.MAX_SAFE_INTEGER);
  expect(looked).toBeLessThanOrEqual(2 * SAMPLES_PER_SECOND);
  const given = 200_000 * Number.MAX_SAFE_INTEGER;
  expect(Math.abs(counted / given - 1)).toBeLessThan(0.1);
  // After the flood, the sampler soon samples more often again.
  for (let at = 0; at < 10; at++) second(sampler, 10);
  expect(second(sampler, 10)).toEqual({ looked: 10, counted: 10 });
});

test('a longer second has proportionally more calls', () => {
  const sampler = new HitSampler(seededRandom(4));
  for (let call = 0; call < 1900; call++) sampler.take(1);
  sampler.adapt(1.9);
  expect(sampler.hitsPerSample).toBe(1);
  for (let call = 0; call < 1900; call++) sampler.take(1);
  sampler.adapt(1);
  expect(sampler.hitsPerSample).toBe(2);
});

test('callers with a fixed rhythm are counted equally', () => {
  const sampler = new HitSampler(seededRandom(5));
  const counted = [0, 0, 0, 0];
  const seen = 400_000;
  for (let call = 0; call < seen; call++) {
    const caller = call % 4;
    counted[caller] = (counted[caller] as number) + sampler.take(1);
  }
  const { hitsPerSample } = sampler;
  expect(hitsPerSample).toBeGreaterThan(16);
  // Five standard deviations.
  const most = 5 * Math.sqrt((seen / 4) * hitsPerSample);
  for (const count of counted) expect(Math.abs(count - seen / 4)).toBeLessThan(most);
});

test('few calls with many hits are counted as exactly as many calls with few hits', () => {
  const sampler = new HitSampler(seededRandom(6));
  const hitsPerSample: number[] = [];
  let large = 0;
  for (let at = 0; at < 10; at++) {
    // 100,000 calls of one hit, with one call of 50,000 hits among them.
    for (let call = 0; call < 100_000; call++) {
      if (call === 50_000) large += sampler.take(50_000);
      sampler.take(1);
    }
    hitsPerSample.push(sampler.hitsPerSample);
    sampler.adapt(1);
  }
  const step = Math.max(...hitsPerSample);
  expect(step).toBeGreaterThan(16);
  // Each estimate is wrong by at most two stretches.
  expect(Math.abs(large - 500_000)).toBeLessThanOrEqual(10 * 2 * step);
});

test('on average, each hit is counted once, for any sizes of calls', () => {
  const random = seededRandom(7);
  const sampler = new HitSampler(seededRandom(8));
  // Enough calls for stretches of at least 64 hits.
  for (let call = 0; call < 200_000; call++) sampler.take(1);
  let given = 0;
  let counted = 0;
  for (let call = 0; call < 2000; call++) {
    const hits = 1 + Math.floor(random() * random() * 5000);
    given += hits;
    counted += sampler.take(hits);
  }
  // Every stretch counts once. The sum is only wrong by the open stretches at both ends, and when stretches become
  // longer.
  expect(Math.abs(counted - given)).toBeLessThanOrEqual(8 * sampler.hitsPerSample);
});
