import { describe, expect, test } from '@jest/globals';
import { CODE, type Descriptor, LIMIT_UNIT } from '../../../src/codec/messages.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { Decider, descriptor } from '../../support/policy/decider.js';

/*
 * Answers of windows with more than one unit, and of token buckets that are configured as windows; also after reloads.
 */

const { OK, OVER_LIMIT } = CODE;

function policy(limits: Readonly<Record<string, string>>, head = ''): string {
  const nodes = Object.entries(limits).map(([key, limit]) => `  - { key: ${key}, rate_limit: { ${limit} } }`);
  return `domain: d\n${head}descriptors:\n${nodes.join('\n')}\n`;
}

/** Sets the wall clock. Timers use the monotonic clock. */
function setWall(decider: Decider, time: string): void {
  decider.clock.advance(Date.parse(time) * 1000 - decider.clock.wall);
}

function ask(decider: Decider, key: string, more: Partial<Descriptor> = {}): readonly (number | undefined)[] {
  const [status] = decider.answer([descriptor([`${key}=x`], more)]).statuses;
  return [status?.code, status?.limitRemaining, status?.durationUntilResetSeconds];
}

describe('unit_multiplier', () => {
  test('is reported as a unit if the window has the length of a unit', () => {
    const limit = (times: number) => `unit: minute, requests_per_unit: 2, unit_multiplier: ${times}`;
    const decider = new Decider(policy({ five: limit(5), sixty: limit(60) }));
    const units = ['five=x', 'sixty=x'].map(
      (entry) => decider.answer([descriptor([entry])]).statuses[0]?.currentLimit?.unit,
    );
    expect(units).toEqual([LIMIT_UNIT.unknown, LIMIT_UNIT.hour]);
  });
});

describe('calendar', () => {
  const berlin = (unit: string): string => `unit: ${unit}, requests_per_unit: 3, calendar: Europe/Berlin`;

  test('is reported as its unit', () => {
    const decider = new Decider(policy({ k: berlin('month') }));
    const { statuses } = decider.answer([descriptor(['k=x'])]);
    expect(statuses[0]?.currentLimit).toMatchObject({ unit: LIMIT_UNIT.month, requestsPerUnit: 3 });
  });
});

describe('a reload', () => {
  /**
   * Returns the remaining hits at `now`: `hits` are taken under one policy, and the bucket is read under another one.
   */
  function leftAfter(before: string, hits: number, after: string): readonly (number | undefined)[] {
    const clock = new FakeClock();
    const store = new MemoryStore({ ...MEMORY, clock });
    const first = new Decider(policy({ k: before }), { store });
    const second = new Decider(policy({ k: after }), { store });
    ask(first, 'k', { hitsAddend: hits });
    return ask(second, 'k', { hitsAddend: 0 }).slice(0, 2);
  }
  const day = 'unit: day, requests_per_unit';

  test('keeps the count of an unchanged window', () => {
    expect(leftAfter(`${day}: 10`, 4, `${day}: 20`)).toEqual([OK, 16]);
    expect(leftAfter(`${day}: 10, calendar: UTC`, 4, `${day}: 6, calendar: UTC`)).toEqual([OK, 2]);
    expect(
      leftAfter(
        'unit: minute, requests_per_unit: 9, unit_multiplier: 60',
        4,
        'unit: hour, requests_per_unit: 9',
      ),
    ).toEqual([OK, 5]);
    // In UTC, a calendar day is a day of the epoch.
    expect(leftAfter(`${day}: 10`, 4, `${day}: 10, calendar: UTC`)).toEqual([OK, 6]);
    expect(leftAfter(`${day}: 10`, 4, `${day}: 10, allow_debt: true`)).toEqual([OK, 6]);
  });

  test('starts with an empty count if the windows differ', () => {
    expect(leftAfter(`${day}: 10`, 4, `${day}: 10, calendar: Asia/Tokyo`)).toEqual([OK, 10]);
    expect(leftAfter(`${day}: 10`, 4, `${day}: 10, unit_multiplier: 2`)).toEqual([OK, 10]);
    expect(leftAfter(`${day}: 10`, 4, `${day}: 10, algorithm: token_bucket`)).toEqual([OK, 10]);
  });
});

describe('algorithm: token_bucket', () => {
  test('applies to limit overrides if the file sets it, and not if only the rule does', () => {
    const limit = { requestsPerUnit: 6, unit: 2 };
    const left = (head: string) => {
      const decider = new Decider(policy({ k: 'unit: day, requests_per_unit: 1' }, head));
      setWall(decider, '2024-01-01T00:00:59Z');
      const more = { hitsAddend: 6, limit };
      const first = ask(decider, 'k', more);
      decider.clock.advance(1_000_000);
      return [first, ask(decider, 'k', { hitsAddend: 1, limit })];
    };
    expect(left('')).toEqual([
      [OK, 0, 1],
      [OK, 5, 60],
    ]);
    expect(left('algorithm: token_bucket\n')).toEqual([
      [OK, 0, 10],
      [OVER_LIMIT, 0, 9],
    ]);
    const none = new Decider(policy({ k: 'unlimited: true' }, 'algorithm: token_bucket\n'));
    expect(ask(none, 'k', { limit: { requestsPerUnit: 0, unit: 2 } })[0]).toBe(OVER_LIMIT);
  });
});
