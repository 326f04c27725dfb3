import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { StoreNeed, storeNeededFrom } from '../../../src/server/follow-serving.js';
import { setOf } from '../../support/policy/policies.js';

/** Wall time at the start of a test, in microseconds. */
const START = 1_700_000_000_000_000;
const LIMIT = 'unit: day, requests_per_unit: 1';

const policies = (...nodes: string[]) =>
  setOf(`domain: d\ndescriptors:\n${nodes.map((node) => `  - ${node}\n`).join('')}`);
const node = (more: string, limit = LIMIT) => `{ key: k, ${more} rate_limit: { ${limit} } }`;

describe('the need for the store', () => {
  test.each([
    ['by a rule in force', node(''), -Infinity],
    ['by a share of one', node('enforce_percent: 1,'), -Infinity],
    ['by a quota', node('quota_mode: true,'), -Infinity],
    [
      'from the time on at which a rule is active',
      node("phase: { active: '2023-11-14T22:14:20Z' },"),
      START + 60_000_000,
    ],
    ['never by monitoring', node('phase: monitoring,'), Infinity],
    ['never by a grace period', node('phase: grace_period,'), Infinity],
    ['never in shadow mode', node('shadow_mode: true,'), Infinity],
    ['never by a share of nothing', node('enforce_percent: 0,'), Infinity],
    ['never without a limit', node('', 'unlimited: true'), Infinity],
    ['never by another policy than error', node('', `on_store_failure: local, ${LIMIT}`), Infinity],
  ])('%s', (_, text, from) => {
    expect(storeNeededFrom(policies(text), false)).toBe(from);
    expect(storeNeededFrom(policies(text), true)).toBe(Infinity);
  });

  test('exists if one of several rules needs it, and not without policies', () => {
    const soon = node("phase: { active: '2023-11-14T22:14:20Z' },");
    const late = node("phase: { active: '2030-01-01T00:00:00Z' },").replace('key: k', 'key: l');
    expect(storeNeededFrom(policies(late, soon), false)).toBe(START + 60_000_000);
    expect(storeNeededFrom(undefined, false)).toBe(Infinity);
  });
});

describe('a schedule', () => {
  let stepMicros: number;
  let reports: boolean[];
  let need: StoreNeed;

  beforeEach(() => {
    jest.useFakeTimers({ now: START / 1000 });
    stepMicros = 0;
    const clock = { wallMicros: () => Date.now() * 1000 + stepMicros, monotonicMicros: () => 0 };
    reports = [];
    need = new StoreNeed(clock, false, (needed) => reports.push(needed));
  });
  afterEach(() => {
    need.close();
    expect(jest.getTimerCount()).toBe(0);
    jest.useRealTimers();
  });

  test('is followed: a later need is reported once', () => {
    expect(need.update(policies(node("phase: { active: '2023-11-14T22:43:20Z' },")))).toBe(false);
    jest.advanceTimersByTime(1_799_999);
    expect(reports).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(reports).toEqual([true]);
    jest.advanceTimersByTime(600_000);
    expect(reports).toEqual([true]);
  });

  test('is followed after a step of the wall clock', () => {
    need.update(policies(node("phase: { active: '2030-01-01T00:00:00Z' },")));
    stepMicros = 10 * 365 * 86_400 * 1_000_000;
    jest.advanceTimersByTime(60_000);
    expect(reports).toEqual([true]);
  });

  test('of replaced policies is dropped', () => {
    need.update(policies(node("phase: { active: '2023-11-14T22:14:20Z' },")));
    expect(need.update(policies(node('phase: monitoring,')))).toBe(false);
    jest.advanceTimersByTime(600_000);
    expect(reports).toEqual([]);
    expect(need.update(policies(node('')))).toBe(true);
  });
});
