import { describe, expect, test } from '@jest/globals';
import { CODE, type Descriptor, LIMIT_UNIT } from '../../../src/codec/messages.js';
import { Decider, descriptor } from '../../support/policy/decider.js';

/* Window rules, as envoyproxy/ratelimit answers them. */

const POLICY = `
domain: d
descriptors:
  - key: ten
    rate_limit: { name: ten, unit: minute, requests_per_unit: 10 }
  - key: free
    rate_limit: { unlimited: true }
`;
const { OK, OVER_LIMIT } = CODE;
const MOST = Number.MAX_SAFE_INTEGER;

const hits = (hitsAddend: number | undefined, key = 'ten'): Descriptor =>
  descriptor([`${key}=x`], { hitsAddend });
/** Code and what is left of each descriptor. */
const asked = (decider: Decider, ...descriptors: Descriptor[]) =>
  decider.answer(descriptors).statuses.map(({ code, limitRemaining }) => [code, limitRemaining]);

describe('one window', () => {
  test.each([
    ['counts down', [1, 1, 1], [OK, 7]],
    ['is OK exactly at the limit', [4, 6], [OK, 0]],
    ['is over past it, with nothing left', [4, 7], [OVER_LIMIT, 0]],
    ['counts hits that it refuses', [9, 2, 0], [OVER_LIMIT, 0]],
    ['is OK for a peek exactly at the limit', [10, 0], [OK, 0]],
    ['is over for a peek past it', [11, 0], [OVER_LIMIT, 0]],
    ['is not changed by peeks', [0, 0, 0, 3], [OK, 7]],
    ['takes the largest hits', [MOST], [OVER_LIMIT, 0]],
    ['takes them again and again', [MOST, MOST, MOST, 1], [OVER_LIMIT, 0]],
    ['says nothing odd past them', [MOST, MOST, 0], [OVER_LIMIT, 0]],
  ])('%s', (_name, addends, expected) => {
    const decider = new Decider(POLICY);
    let last: unknown;
    for (const addend of addends) [last] = asked(decider, hits(addend));
    expect(last).toEqual(expected);
  });

  test('says name, limit, unit and seconds until it ends, allowed or not', () => {
    const decider = new Decider(POLICY);
    const currentLimit = { name: 'ten', requestsPerUnit: 10, unit: LIMIT_UNIT.minute };
    for (const [code, limitRemaining] of [
      [OK, 0],
      [OVER_LIMIT, 0],
    ]) {
      expect(decider.answer([hits(10)]).statuses).toEqual([
        { code, currentLimit, limitRemaining, durationUntilResetSeconds: 40 },
      ]);
    }
    decider.clock.advance(500_000);
    // Whole seconds of the clock count, as there: 39.5 are 40.
    expect(decider.answer([hits(10)]).statuses[0]?.durationUntilResetSeconds).toBe(40);
    decider.clock.advance(500_000);
    expect(decider.answer([hits(10)]).statuses[0]?.durationUntilResetSeconds).toBe(39);
  });
});

describe('several descriptors', () => {
  test('without a limit, or unlimited, say nothing but OK', () => {
    const { statuses, responseHeadersToAdd } = new Decider(POLICY).answer([
      hits(1, 'nothing'),
      hits(MOST, 'free'),
    ]);
    const without = { code: OK, currentLimit: undefined, durationUntilResetSeconds: undefined };
    expect(statuses).toEqual([
      { ...without, limitRemaining: 0 },
      { ...without, limitRemaining: 4_294_967_295 },
    ]);
    expect(responseHeadersToAdd).toEqual([]);
  });
});

describe('overrides', () => {
  const override = (requestsPerUnit: number, unit: number) =>
    descriptor(['ten=x'], { limit: { requestsPerUnit, unit } });

  test.each([
    [1, LIMIT_UNIT.second, 1],
    [2, LIMIT_UNIT.minute, 40],
    [3, LIMIT_UNIT.hour, 2800],
    [4, LIMIT_UNIT.day, 6400],
    [5, LIMIT_UNIT.month, 352_000],
    [6, LIMIT_UNIT.year, 2_944_000],
    [7, LIMIT_UNIT.week, 92_800],
  ])('of unit %p are windows of that unit', (unit, reported, seconds) => {
    const { statuses } = new Decider(POLICY).answer([override(3, unit)]);
    expect(statuses).toEqual([
      {
        code: OK,
        currentLimit: { name: '', requestsPerUnit: 3, unit: reported },
        limitRemaining: 2,
        durationUntilResetSeconds: seconds,
      },
    ]);
  });

  test('are of the values asked for, also where the rule shares one bucket between them', () => {
    const shared = `
domain: d
descriptors:
  - { key: file, value: "f*", share_threshold: true, rate_limit: { unit: hour, requests_per_unit: 5 } }
`;
    const decider = new Decider(shared);
    const file = (value: string) => descriptor([`file=${value}`], { limit: { requestsPerUnit: 2, unit: 3 } });
    expect(asked(decider, file('f1'), file('f2'), file('f1'))).toEqual([
      [OK, 1],
      [OK, 1],
      [OK, 0],
    ]);
  });
});
