import { describe, expect, test } from '@jest/globals';
import { deniedSince } from '../../../src/page/text/denied-since.js';

const STEP = 5;
const ENDS = 10_000;
/** Returns denials per step. `counts`: number of steps with denials, then of steps without, and so on. */
const steps = (...counts: readonly number[]) =>
  counts.flatMap((count, at) => Array.from({ length: count }, () => (at % 2 === 0 ? 2 : 0)));
const since = (denied: readonly number[]) => deniedSince(denied, STEP, ENDS);

describe('the time since which a rule denies requests', () => {
  test('is the beginning of the first step', () => {
    expect(since(steps(0, 5, 3))).toEqual({ at: ENDS - 3 * STEP, orBefore: false });
    expect(since(steps(1))).toEqual({ at: ENDS - STEP, orBefore: false });
  });

  test('restarts after a pause of more than a minute', () => {
    expect(since(steps(1, 11, 1, 11))).toEqual({ at: ENDS - 24 * STEP, orBefore: false });
    expect(since(steps(1, 12, 1))).toEqual({ at: ENDS - STEP, orBefore: false });
  });

  test('is unset if the rule has denied nothing in the last minute', () => {
    expect(since(steps(5, 12))).toBeUndefined();
    expect(since(steps(0, 5))).toBeUndefined();
    expect(since([])).toBeUndefined();
  });

  test('may be earlier if the rule has denied requests for the whole hour', () => {
    expect(since(steps(719))).toEqual({ at: ENDS - 719 * STEP, orBefore: true });
    expect(since(steps(0, 11, 708))?.orBefore).toBe(true);
    expect(since(steps(0, 12, 707))?.orBefore).toBe(false);
  });
});
