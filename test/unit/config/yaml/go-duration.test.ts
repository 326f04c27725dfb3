import { expect, test } from '@jest/globals';
import { parseGoDuration } from '../../../../src/config/yaml/go-duration.js';

test.each([
  ['0', 0n],
  ['1ns', 1n],
  ['500us', 500_000n],
  ['500\u00b5s', 500_000n],
  ['500\u03bcs', 500_000n],
  ['150ms', 150_000_000n],
  ['1s', 1_000_000_000n],
  ['1.5s', 1_500_000_000n],
  ['.5s', 500_000_000n],
  ['1.s', 1_000_000_000n],
  ['0.0000000019s', 1n],
  ['1h30m', 5_400_000_000_000n],
  ['+1m', 60_000_000_000n],
  ['-1m', -60_000_000_000n],
  ['2562047h47m16.854775807s', 2n ** 63n - 1n],
])('%s is %d ns', (text, nanos) => {
  expect(parseGoDuration(text)).toBe(nanos);
});

test.each([
  '',
  '1',
  '-',
  '+',
  '.',
  '.s',
  's',
  '1 s',
  '1d',
  '1S',
  '1e3s',
  's1',
  '1s ',
  '2562048h',
  '1h-30m',
  '１s',
])('"%s" is not a duration', (text) => {
  expect(parseGoDuration(text)).toBeUndefined();
});
