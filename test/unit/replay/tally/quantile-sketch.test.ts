import { describe, expect, test } from '@jest/globals';
import { QuantileSketch, SKETCH_ERROR } from '../../../../src/replay/tally/quantile-sketch.js';

describe('QuantileSketch', () => {
  test.each([0, 0.001, 0.01, 0.5])('finds what a share of %d exceeds, within the stated error', (share) => {
    const sketch = new QuantileSketch();
    for (let value = 1; value <= 100_000; value++) sketch.add(value);
    const exact = 100_000 * (1 - share);
    expect(Math.abs(sketch.exceededBy(share) / exact - 1)).toBeLessThanOrEqual(SKETCH_ERROR + 1e-5);
  });

  test('is empty at the beginning', () => {
    expect(new QuantileSketch().exceededBy(0.01)).toBe(0);
  });
});
