import { describe, expect, test } from '@jest/globals';
import { CODE, type Descriptor, LIMIT_UNIT } from '../../../src/codec/messages.js';
import { Decider, descriptor } from '../../support/policy/decider.js';

/*
 * Limit overrides in requests, decided like envoyproxy/ratelimit decides them. property/reference-answers tests the
 * rest.
 */

const POLICY = `
domain: d
descriptors:
  - key: ten
    rate_limit: { name: ten, unit: minute, requests_per_unit: 10 }
`;
const { OK } = CODE;

/** Returns code and remaining hits of each descriptor. */
const asked = (decider: Decider, ...descriptors: Descriptor[]) =>
  decider.answer(descriptors).statuses.map(({ code, limitRemaining }) => [code, limitRemaining]);

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
  ])('with unit %p are windows of that unit', (unit, reported, seconds) => {
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

  test('have separate buckets for values, even if the rule shares one bucket', () => {
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
