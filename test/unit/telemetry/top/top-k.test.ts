import { expect, test } from '@jest/globals';
import { TopK } from '../../../../src/telemetry/top/top-buckets.js';
import { seededRandom } from '../../../support/limiter/seeded-random.js';

test.each([0, 1, 2, 7, 64, 500])('returns the first %d of many in order', (most) => {
  const random = seededRandom(most);
  const numbers = Array.from({ length: 200 }, () => Math.floor(random() * 100));
  const first = new TopK<number>(most, (one, other) => other - one);
  for (const number of numbers) first.add(number);
  const sorted = [...numbers].sort((one, other) => other - one);
  expect(first.sorted).toEqual(sorted.slice(0, most));
});
