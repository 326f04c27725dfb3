import { describe, expect, test } from '@jest/globals';
import type { Measurement } from '../../stall/measure-case.js';
import { failuresOf, recordName, relativeCostOf } from '../../stall/recorded.js';
import { markdownTable, textTable } from '../../stall/table.js';

const CALIBRATION_MS = 20;
const passing: Measurement = {
  name: 'PING',
  connections: 16,
  kilobytes: 1000,
  cpuMicros: 100_000,
  microsPerKilobyte: 100,
  delayMs: 50,
  delayWallMs: 300,
  innocent: { calls: 100, unanswered: 0, failure: undefined, p50Ms: 1, p99Ms: 2, longestMs: 300 },
  answers: { closed: 3 },
  settled: true,
  alive: true,
};
const recorded = { 'PING (16)': 5000 };

function failures(
  changes: Partial<Measurement>,
  costs: Record<string, number> | undefined = recorded,
): string[] {
  return failuresOf({ ...passing, ...changes }, costs, CALIBRATION_MS);
}

describe('a measurement', () => {
  test('is recorded by case name and number of connections, as a multiple of the calibration time', () => {
    expect(recordName(passing)).toBe('PING (16)');
    expect(relativeCostOf(passing, CALIBRATION_MS)).toBe(5000);
    expect(relativeCostOf(passing, 2 * CALIBRATION_MS)).toBe(2500);
  });

  test('passes at the bounds, even if the thread waited long for a core', () => {
    expect(failures({})).toEqual([]);
    expect(failures({ microsPerKilobyte: 349 })).toEqual([]);
  });

  test.each<[string, Partial<Measurement>, RegExp]>([
    ['with a blocked event loop', { delayMs: 50.6 }, /blocked the event loop for 51 ms/],
    [
      'with a higher cost',
      { microsPerKilobyte: 360 },
      /3\.6 times the recorded CPU time \(18000 instead of 5000/,
    ],
    ['after which weir has ended', { alive: false }, /weir has ended/],
    ['whose attack sent no data', { kilobytes: 0 }, /sent no data/],
    [
      'with unanswered calls',
      { innocent: { ...passing.innocent, unanswered: 7 } },
      /7 calls of the innocent caller were not answered/,
    ],
    [
      'whose innocent caller lost its connection',
      { innocent: { ...passing.innocent, failure: '"GOAWAY, code 11"' } },
      /innocent caller received "GOAWAY, code 11"/,
    ],
    ['without a recorded cost', { name: 'PONG' }, /no cost is recorded/],
  ])('%s fails', (_name, changes, message) => {
    expect(failures(changes)).toEqual([expect.stringMatching(message)]);
  });

  test('passes if its total CPU time may be noise', () => {
    expect(failures({ kilobytes: 10, microsPerKilobyte: 5000 })).toEqual([]);
  });

  test('passes at any cost while costs are being recorded', () => {
    expect(failuresOf({ ...passing, microsPerKilobyte: 5000 }, undefined, CALIBRATION_MS)).toEqual([]);
  });
});

test('the table shows the failures and the number of attempts', () => {
  const rows = [{ measured: { ...passing, name: '*x*' }, failures: ['too slow'], attempts: 3 }];
  expect(textTable(rows)).toMatch(
    /\*x\* \(16\) +1000 +100 +100 +50\.0 +300 .*closed ×3 +FAILS: too slow; best of 3$/,
  );
  expect(markdownTable(rows)).toMatch(/\| \\\*x\\\* \(16\) \| 1000 \|.*\| FAILS: too slow; best of 3 \|$/);
});
