import { describe, expect, test } from '@jest/globals';
import type { Measurement } from '../../stall/measure-case.js';
import { faultsOf, recordName, recordOf } from '../../stall/recorded.js';
import { markdownTable, textTable } from '../../stall/table.js';

const YARDSTICK_MS = 20;
const good: Measurement = {
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

function faults(
  changes: Partial<Measurement>,
  costs: Record<string, number> | undefined = recorded,
): string[] {
  return faultsOf({ ...good, ...changes }, costs, YARDSTICK_MS);
}

describe('a measurement', () => {
  test('is recorded by name and connections, as a multiple of the yardstick', () => {
    expect(recordName(good)).toBe('PING (16)');
    expect(recordOf(good, YARDSTICK_MS)).toBe(5000);
    expect(recordOf(good, 2 * YARDSTICK_MS)).toBe(2500);
  });

  test('is good at the bounds, however late the kernel made it', () => {
    expect(faults({})).toEqual([]);
    expect(faults({ microsPerKilobyte: 349 })).toEqual([]);
  });

  test.each<[string, Partial<Measurement>, RegExp]>([
    ['whose loop was held up', { delayMs: 50.6 }, /held up for 51 ms/],
    ['that costs more', { microsPerKilobyte: 360 }, /3\.6 times the CPU recorded \(18000 against 5000/],
    ['of a weir that has ended', { alive: false }, /weir has ended/],
    ['of an attack that was none', { kilobytes: 0 }, /sent nothing/],
    [
      'with calls without an answer',
      { innocent: { ...good.innocent, unanswered: 7 } },
      /7 calls of the innocent caller were not answered/,
    ],
    [
      'whose innocent caller was refused',
      { innocent: { ...good.innocent, failure: '"GOAWAY, code 11"' } },
      /innocent caller got "GOAWAY, code 11"/,
    ],
    ['that nobody recorded', { name: 'PONG' }, /no cost is recorded/],
  ])('%s fails', (_name, changes, sentence) => {
    expect(faults(changes)).toEqual([expect.stringMatching(sentence)]);
  });

  test('that costs next to nothing is not held against what is recorded', () => {
    expect(faults({ kilobytes: 10, microsPerKilobyte: 5000 })).toEqual([]);
  });

  test('is not held against anything while costs are recorded', () => {
    expect(faultsOf({ ...good, microsPerKilobyte: 5000 }, undefined, YARDSTICK_MS)).toEqual([]);
  });
});

test('the table says what fails, and how often it was tried', () => {
  const rows = [{ measured: { ...good, name: '*x*' }, faults: ['too slow'], tries: 3 }];
  expect(textTable(rows)).toMatch(
    /\*x\* \(16\) +1000 +100 +100 +50\.0 +300 .*closed ×3 +FAILS: too slow; best of 3$/,
  );
  expect(markdownTable(rows)).toMatch(/\| \\\*x\\\* \(16\) \| 1000 \|.*\| FAILS: too slow; best of 3 \|$/);
});
