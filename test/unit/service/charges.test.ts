import { beforeEach, describe, expect, test } from '@jest/globals';
import { CODE, type Descriptor } from '../../../src/codec/messages.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { Decider, descriptor } from '../../support/policy/decider.js';

/* allow_debt: what was used is charged afterwards, whatever is left. */

const POLICY = `
domain: d
descriptors:
  - key: tokens
    rate_limit:
      token_bucket: { max_tokens: 100, tokens_per_fill: 10, fill_interval: 1s }
      allow_debt: true
      max_debt: 50
  - key: window
    rate_limit: { unit: minute, requests_per_unit: 100, allow_debt: true, max_debt: 50 }
  - key: deep
    rate_limit: { unit: minute, requests_per_unit: 100, allow_debt: true }
  - key: day
    rate_limit: { unit: day, requests_per_unit: 100, calendar: Europe/Berlin, allow_debt: true }
  - key: none
    rate_limit: { unit: day, requests_per_unit: 0 }
  - key: watched
    shadow_mode: true
    rate_limit: { unit: day, requests_per_unit: 0 }
`;
const { OK, OVER_LIMIT } = CODE;
const SECOND = 1_000_000;

let decider: Decider;
beforeEach(() => {
  decider = new Decider(POLICY);
  // The start of a minute.
  decider.clock.advance(40 * SECOND);
});

const one = (key: string, hitsAddend: number, isNegativeHits = false): Descriptor =>
  descriptor([`${key}=x`], { hitsAddend, isNegativeHits });
/** Code, what is left, and seconds until more. */
const ask = (key: string, hits: number, refund = false): readonly (number | undefined)[] => {
  const [status] = decider.answer([one(key, hits, refund)]).statuses;
  return [status?.code, status?.limitRemaining, status?.durationUntilResetSeconds];
};
const PEEK = 0;

describe('a token bucket', () => {
  test('is charged on any level, down to its deepest debt', () => {
    expect(ask('tokens', 99)).toEqual([OK, 1, 1]);
    // A charge of more than is there.
    expect(ask('tokens', 41)).toEqual([OK, 0, 5]);
    // And one on an empty bucket, of which 40 are forgiven.
    expect(ask('tokens', 50)).toEqual([OK, 0, 6]);
    expect(ask('tokens', 1000)).toEqual([OK, 0, 6]);
  });
});

describe('a window', () => {
  test('counts charges past its limit, which the next one pays', () => {
    expect(ask('window', 90)).toEqual([OK, 10, 60]);
    expect(ask('window', 40)).toEqual([OK, 0, 60]);
    expect(ask('window', 1)).toEqual([OVER_LIMIT, 0, 60]);
    expect(ask('window', PEEK)).toEqual([OVER_LIMIT, 0, 60]);
    // 20 of them.
    expect(ask('window', 40)).toEqual([OK, 0, 60]);
    decider.clock.advance(60 * SECOND);
    expect(ask('window', PEEK)).toEqual([OK, 50, 60]);
    expect(ask('window', 1)).toEqual([OK, 49, 60]);
    decider.clock.advance(60 * SECOND);
    expect(ask('window', PEEK)).toEqual([OK, 100, 60]);
  });

  test('whose debt is the whole next one makes callers wait until that has ended', () => {
    ask('deep', 200);
    expect(ask('deep', 1)).toEqual([OVER_LIMIT, 0, 120]);
    decider.clock.advance(60 * SECOND);
    expect(ask('deep', 1)).toEqual([OVER_LIMIT, 0, 60]);
    expect(ask('deep', 500)).toEqual([OK, 0, 60]);
    expect(ask('deep', PEEK)).toEqual([OVER_LIMIT, 0, 120]);
    decider.clock.advance(120 * SECOND);
    expect(ask('deep', PEEK)).toEqual([OK, 100, 60]);
  });

  test('of a calendar pays in the next day, however long that is', () => {
    decider.clock.advance(Date.parse('2024-03-30T12:00Z') * 1000 - decider.clock.wall);
    ask('day', 200);
    // The rest of the day, and one of 23 hours.
    expect(ask('day', 1)).toEqual([OVER_LIMIT, 0, (11 + 23) * 3600]);
    decider.clock.advance(11 * 3600 * SECOND);
    expect(ask('day', 1)).toEqual([OVER_LIMIT, 0, 23 * 3600]);
    decider.clock.advance(23 * 3600 * SECOND);
    expect(ask('day', PEEK)).toEqual([OK, 100, 24 * 3600]);
  });
});

describe('several descriptors', () => {
  const codes = (...descriptors: Descriptor[]) =>
    decider.answer(descriptors).statuses.map(({ code }) => code);

  test.each(['tokens', 'window'])('a charge on %s beside a denial takes nothing', (key) => {
    expect(codes(one(key, 60), one('none', 1))).toEqual([OK, OVER_LIMIT]);
    expect(ask(key, PEEK).slice(0, 2)).toEqual([OK, 100]);
    // Nor does a refund give anything back.
    ask(key, 150);
    expect(codes(one(key, 100, true), one('none', 1))).toEqual([OK, OVER_LIMIT]);
    expect(ask(key, PEEK)[0]).toBe(OVER_LIMIT);
  });

  test.each(['tokens', 'window'])('a charge on %s beside what only observes is taken', (key) => {
    expect(codes(one(key, 60), one('watched', 1))).toEqual([OK, OK]);
    expect(ask(key, PEEK).slice(0, 2)).toEqual([OK, 40]);
  });

  test('that name one bucket charge the sum', () => {
    expect(codes(one('tokens', 80), one('tokens', 80))).toEqual([OK, OK]);
    expect(ask('tokens', 1)).toEqual([OVER_LIMIT, 0, 6]);
    expect(codes(one('deep', 150), one('deep', 2, true), one('deep', 2))).toEqual([OK, OK, OK]);
    decider.clock.advance(60 * SECOND);
    expect(ask('deep', PEEK)).toEqual([OK, 50, 60]);
  });
});

describe('a reload', () => {
  const bucket = 'token_bucket: { max_tokens: 100, tokens_per_fill: 10, fill_interval: 1s }';
  const perDay = (limit: number) => `unit: day, requests_per_unit: ${limit}`;
  const policy = (limit: string) => `domain: d\ndescriptors: [{ key: k, rate_limit: { ${limit} } }]\n`;

  test.each([
    // No debt any more: the bucket is empty.
    [`${bucket}, allow_debt: true`, 300, bucket, [OVER_LIMIT, 0, 1]],
    // A smaller one.
    [`${bucket}, allow_debt: true`, 300, `${bucket}, allow_debt: true, max_debt: 10`, [OVER_LIMIT, 0, 2]],
  ])('from %s after %s to %s', (before, hits, after, expected) => {
    const clock = new FakeClock();
    const store = new MemoryStore({ ...MEMORY, clock });
    new Decider(policy(before), { store }).answer([one('k', hits)]);
    decider = new Decider(policy(after), { store });
    expect(ask('k', 1)).toEqual(expected);
  });

  test('of a window to a smaller debt leaves no more than that', () => {
    const clock = new FakeClock();
    const store = new MemoryStore({ ...MEMORY, clock });
    const first = new Decider(policy(perDay(100)), { store });
    // Denied hits count at a window without debt.
    for (let i = 0; i < 9; i++) first.answer([one('k', 100)]);
    decider = new Decider(policy(`${perDay(100)}, allow_debt: true, max_debt: 10`), { store });
    expect(ask('k', 5).slice(0, 2)).toEqual([OK, 0]);
    clock.advance(86_400 * SECOND);
    expect(ask('k', PEEK).slice(0, 2)).toEqual([OK, 90]);
  });
});
