import { expect, test } from '@jest/globals';
import { DurationHistogram, FamilyRegistry } from '../../../src/telemetry/family-registry.js';

const histogram = (name: string, help: string, bounds: readonly number[]) =>
  new DurationHistogram({ name, help, type: 'histogram', aggregator: 'sum' }, bounds);

test('counts a value in the first bucket that contains it, and shows cumulative counts', async () => {
  const seconds = histogram('h', 'help', [0.1, 1]);
  for (const value of [0.05, 0.1, 0.5, 3]) seconds.observe(value);
  const registry = new FamilyRegistry();
  registry.addFamily(seconds);
  expect(String(await registry.text())).toBe(
    [
      '# HELP h help',
      '# TYPE h histogram',
      'h_bucket{le="0.1"} 2',
      'h_bucket{le="1"} 3',
      'h_bucket{le="+Inf"} 4',
      'h_sum 3.65',
      'h_count 4',
      '',
    ].join('\n'),
  );
});

test('omits a family with an existing name', async () => {
  const registry = new FamilyRegistry();
  registry.addFamily(histogram('h', 'first', [1]));
  registry.addSource(() => [histogram('h', 'second', [1]), histogram('i', 'third', [1])]);
  const text = String(await registry.text());
  expect(text).toContain('# HELP h first');
  expect(text).not.toContain('second');
  expect(text).toContain('# HELP i third');
});
