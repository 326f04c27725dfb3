import { describe, expect, test } from '@jest/globals';
import { delaysOf, failuresOf } from '../../stall/failures.js';
import type { Measurement } from '../../stall/measure-case.js';
import { textTable } from '../../stall/table.js';

const innocent = {
  ...{ calls: 100, unanswered: 0, failure: undefined },
  ...{ p50Ms: 1, p99Ms: 2, p999Ms: 14, longestMs: 300 },
};
const passing: Measurement = {
  ...{ name: 'PING', connections: 16, kilobytes: 1000, coreShare: 0.6, delayMs: 50, delayWallMs: 300 },
  innocent,
  quiet: [
    { ...innocent, p999Ms: 4 },
    { ...innocent, p999Ms: 3 },
  ],
  ...{ answers: { closed: 3 }, answerFailures: [], settled: true, alive: true },
};

describe('a measurement', () => {
  test('passes at the bounds, even if the thread waited long for a core', () => {
    expect([...failuresOf(passing), ...delaysOf(passing)]).toEqual([]);
  });

  test.each<[string, Partial<Measurement>, RegExp]>([
    ['after which weir has ended', { alive: false }, /weir has ended/],
    ['whose attack sent no data', { kilobytes: 0 }, /sent no data/],
    [
      'with unanswered calls',
      { innocent: { ...innocent, unanswered: 7 } },
      /7 calls of the innocent caller were not answered/,
    ],
    [
      'whose innocent caller lost its connection',
      { innocent: { ...innocent, failure: '"GOAWAY, code 11"' } },
      /innocent caller received "GOAWAY, code 11"/,
    ],
    ['with wrong answers', { answerFailures: ['3 calls got no decision'] }, /3 calls got no decision/],
  ])('%s fails on any machine', (_name, changes, message) => {
    expect(failuresOf({ ...passing, ...changes })).toEqual([expect.stringMatching(message)]);
  });

  test.each<[string, Partial<Measurement>, RegExp]>([
    ['with a blocked event loop', { delayMs: 50.6 }, /blocked the event loop for 51 ms/],
    [
      'whose innocent caller waits longer than without the attack',
      { innocent: { ...innocent, p999Ms: 14.5 } },
      /waits 10\.5 ms longer at p99\.9/,
    ],
  ])('%s is too slow', (_name, changes, message) => {
    const measured = { ...passing, ...changes };
    expect(delaysOf(measured)).toEqual([expect.stringMatching(message)]);
    expect(failuresOf(measured)).toEqual([]);
  });
});

test('the table shows the latencies without the attack, and the failures', () => {
  expect(textTable([{ measured: passing, failures: ['too slow'] }])).toMatch(
    /PING \(16\) +1000 +60 +50\.0 +300 .* 14\.0 +300 +4\.0, 3\.0 +closed ×3 +FAILS: too slow$/,
  );
});
