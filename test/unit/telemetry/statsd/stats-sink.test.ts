import { expect, test } from '@jest/globals';
import { extraTags } from '../../../../src/telemetry/statsd/stats-sink.js';

test('tags contain no separators or line breaks', () => {
  const tags = new Map([
    ['z', 'a.b:c|d'],
    ['a b|c=', 'two words\nand\ta line'],
    ['', 'no name'],
    ['empty', ''],
  ]);
  expect(extraTags(tags)).toEqual([
    ['a_b_c_', 'two words_and_a line'],
    ['z', 'a_b_c_d'],
  ]);
});
