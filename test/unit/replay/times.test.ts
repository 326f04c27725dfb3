import { expect, test } from '@jest/globals';
import { parseRfc3339 } from '../../../src/config/read/field-values.js';
import { readDuration, TimeReader } from '../../../src/replay/times.js';

const NINE = Date.parse('2026-11-20T09:00:00Z') * 1000;

test.each([
  ['2026-11-20T09:00:00Z', 0],
  ['2026-11-20T09:00:00.1Z', 100_000],
  ['2026-11-20T09:00:59.123456Z', 59_123_456],
  ['2026-11-20T09:00:07.123456789Z', 7_123_456],
  ['2026-11-20T10:00:00.5+01:00', 500_000],
  [NINE / 1_000_000, 0],
  [NINE / 1_000_000 + 0.25, 250_000],
  [NINE / 1000 + 1, 1000],
  [NINE + 1, 1],
  [`${NINE / 1_000_000}.000125`, 125],
  [String(NINE + 7), 7],
])('reads the time %j', (value, afterNine) => {
  const reader = new TimeReader();
  expect(reader.read(value)).toBe(NINE + afterNine);
  // The reader remembers the minute of the time before.
  expect(reader.read('2026-11-20T09:00:30.25Z')).toBe(NINE + 30_250_000);
  expect(reader.read(value)).toBe(NINE + afterNine);
});

test.each([
  ...[
    '',
    '-',
    'yesterday',
    '2026-11-20',
    '2026-11-20T09:00:00',
    '2026-11-20T09:00:60Z',
    '2026-13-20T09:00:00Z',
  ],
  ...[
    '2026-11-20T09:00:0xZ',
    '2026-11-20T09:00:00.Z',
    '2026-11-20T09:00:00.1234567890Z',
    '12.5.',
    '-5',
    200,
    0,
  ],
  ...[Number.NaN, 1e300, null, undefined, true, {}, '1970-01-01T00:00:05Z'],
])('does not read %j as a time', (value) => {
  const reader = new TimeReader();
  expect(reader.read(value)).toBeUndefined();
  reader.read('2026-11-20T09:00:00Z');
  expect(reader.read(value)).toBeUndefined();
});

test('reads all times of a minute like the reader of policies', () => {
  const reader = new TimeReader();
  for (let i = 0; i < 5000; i++) {
    const time = `2026-11-20T09:${String(i % 3).padStart(2, '0')}:${String(i % 60).padStart(2, '0')}.${i}Z`;
    expect(reader.read(time)).toBe(parseRfc3339(time));
  }
});

const SECOND = 1_000_000;

test.each([
  ['400ms', undefined, 400_000],
  ['0.4s', undefined, 400_000],
  ['12us', undefined, 12],
  ['12µs', undefined, 12],
  ['1500ns', undefined, 1],
  ['1m2.5s', undefined, 62_500_000],
  ['PT0.4S', undefined, 400_000],
  ['PT1M', undefined, 60_000_000],
  ['P1DT2H3M4.5S', undefined, ((26 * 60 + 3) * 60 + 4.5) * SECOND],
  [400, 1000, 400_000],
  [0.4, SECOND, 400_000],
  ['400', 1000, 400_000],
  ['0.4', SECOND, 400_000],
  [0, 1000, 0],
  // A unit of the value itself is stronger than that of the map.
  ['400ms', SECOND, 400_000],
])('reads the duration %j with the unit %j', (value, unit, micros) => {
  expect(readDuration(value, unit)).toBe(micros);
});

test.each([
  ...[
    400,
    '400',
    '0.4',
    -1,
    '-1s',
    '-',
    '',
    'P',
    'PT',
    'P1Y',
    'P1M',
    'soon',
    '400 ms',
    '1d',
    null,
    undefined,
  ],
  ...[Number.NaN, Number.POSITIVE_INFINITY, true, [], {}],
])('does not read %j as a duration', (value) => {
  expect(readDuration(value, undefined)).toBeUndefined();
});
