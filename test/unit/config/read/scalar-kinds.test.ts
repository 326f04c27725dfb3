import { describe, expect, test } from '@jest/globals';
import { readScalar, type ScalarKind } from '../../../../src/config/read/scalar-kinds.js';

const COUNT = { kind: 'count', min: 1, max: 5000, less: 'or write 7' } as const;
const DURATION = { kind: 'duration', min: 1000, max: 3_600_000_000, step: 1000 } as const;
const WORDS = { kind: 'word', words: ['keep', 'free'] } as const;

/** Returns the value or the problem of a text, which is quoted if it begins with a quote. */
function read(kind: ScalarKind, written: string): unknown {
  const plain = !written.startsWith('"');
  const found = readScalar(kind, { text: plain ? written : written.slice(1, -1), plain }, 'n');
  return found.problem ?? found.value;
}

describe('a value is read by its kind', () => {
  test.each<[ScalarKind, string, unknown]>([
    [COUNT, '1000', 1000],
    [COUNT, '0x10', 16],
    [COUNT, '1_000', 1000],
    // Databases and spreadsheets write whole numbers so.
    [COUNT, '1000.0', 1000],
    [COUNT, '1e3', 1000],
    [{ kind: 'count', min: 0, max: 5 }, '-0.0', 0],
    [{ kind: 'number', min: 0, max: 100 }, '12.5', 12.5],
    [{ kind: 'flag' }, 'Yes', true],
    [DURATION, '1m30s', 90_000_000],
    [{ kind: 'unit' }, 'Minute', 'minute'],
    [WORDS, 'free', 'free'],
    [{ kind: 'text' }, '007', '007'],
  ])('%j: %s', (kind, text, value) => {
    expect(read(kind, text)).toBe(value);
  });

  test.each<[ScalarKind, string, string]>([
    [COUNT, '1.5', '"n" is 1.5; write a whole number from 1 to 5000'],
    [COUNT, '0.0', '"n" is 0.0; write a whole number from 1 to 5000, or write 7'],
    [COUNT, '"5"', '"n" is the string "5"; write a whole number from 1 to 5000, without quotes'],
    [COUNT, '2k', '"n" is "2k"; write a whole number from 1 to 5000'],
    [COUNT, '.inf', '"n" is .inf; write a whole number from 1 to 5000, or write 7'],
    [COUNT, '.nan', '"n" is .nan; write a whole number from 1 to 5000'],
    [
      { kind: 'count', min: 0, max: 2 ** 53 },
      '1e300',
      '"n" is 1e300; write a whole number from 0 to 9007199254740992',
    ],
    [{ kind: 'number', min: 0, max: 100 }, 'NaN', '"n" is "NaN"; write a number from 0 to 100'],
    [{ kind: 'flag' }, '1', '"n" is 1; write true or false'],
    [DURATION, '500us', '"n" is 500us; write a duration from 1ms to 1h'],
    [DURATION, '1500us', '"n" is 1500us; write a whole number of milliseconds'],
    [DURATION, '2h', '"n" is 2h; write a duration from 1ms to 1h'],
    [DURATION, '1d', '"1d" is not a valid duration; write a number and a unit, such as 150ms, 1s or 1h30m'],
    [
      { kind: 'unit' },
      '5m',
      '"5m" is not a valid unit; write one of second, minute, hour, day, week, month, year',
    ],
    [WORDS, 'kep', '"kep" is not one of keep, free; did you mean "keep"?'],
  ])('%j: %s is refused', (kind, text, problem) => {
    expect(read(kind, text)).toBe(problem);
  });
});

test('the value of an octal number has a warning', () => {
  expect(readScalar(COUNT, { text: '010', plain: true }, 'n')).toEqual({
    value: 8,
    warning: expect.stringMatching(/^YAML reads "010" as an octal number, which is 8 in decimal/),
  });
});
