import { beforeEach, describe, expect, test } from '@jest/globals';
import { CODE, type Descriptor } from '../../../src/codec/messages.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { Decider, descriptor } from '../../support/policy/decider.js';

/*
 * allow_debt: weir charges usage afterwards, regardless of the remaining tokens. property/limiter/debt.property.test.ts
 * tests the results of single buckets and windows.
 */

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
/** Returns code, remaining hits, and seconds until the reset. */
const ask = (key: string, hits: number, refund = false): readonly (number | undefined)[] => {
  const [status] = decider.answer([one(key, hits, refund)]).statuses;
  return [status?.code, status?.limitRemaining, status?.durationUntilResetSeconds];
};
const PEEK = 0;

describe('several descriptors', () => {
  const codes = (...descriptors: Descriptor[]) =>
    decider.answer(descriptors).statuses.map(({ code }) => code);

  test.each(['tokens', 'window'])('a charge for %s next to a denial takes no tokens', (key) => {
    expect(codes(one(key, 60), one('none', 1))).toEqual([OK, OVER_LIMIT]);
    expect(ask(key, PEEK).slice(0, 2)).toEqual([OK, 100]);
    // A refund does not change the bucket, either.
    ask(key, 150);
    expect(codes(one(key, 100, true), one('none', 1))).toEqual([OK, OVER_LIMIT]);
    expect(ask(key, PEEK)[0]).toBe(OVER_LIMIT);
  });

  test.each(['tokens', 'window'])('a charge for %s next to an observed limit is taken', (key) => {
    expect(codes(one(key, 60), one('watched', 1))).toEqual([OK, OK]);
    expect(ask(key, PEEK).slice(0, 2)).toEqual([OK, 40]);
  });

  test('with one bucket charge the sum', () => {
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
    // The debt is paid, and the bucket is empty.
    [`${bucket}, allow_debt: true`, 300, bucket, [OVER_LIMIT, 0, 1]],
    // A smaller charge.
    [`${bucket}, allow_debt: true`, 300, `${bucket}, allow_debt: true, max_debt: 10`, [OVER_LIMIT, 0, 2]],
  ])('from %s after %s to %s', (before, hits, after, expected) => {
    const clock = new FakeClock();
    const store = new MemoryStore({ ...MEMORY, clock });
    new Decider(policy(before), { store }).answer([one('k', hits)]);
    decider = new Decider(policy(after), { store });
    expect(ask('k', 1)).toEqual(expected);
  });

  test('of a window to a smaller debt leaves at most that debt', () => {
    const clock = new FakeClock();
    const store = new MemoryStore({ ...MEMORY, clock });
    const first = new Decider(policy(perDay(100)), { store });
    // Denied hits count in a window without debt.
    for (let i = 0; i < 9; i++) first.answer([one('k', 100)]);
    decider = new Decider(policy(`${perDay(100)}, allow_debt: true, max_debt: 10`), { store });
    expect(ask('k', 5).slice(0, 2)).toEqual([OK, 0]);
    clock.advance(86_400 * SECOND);
    expect(ask('k', PEEK).slice(0, 2)).toEqual([OK, 90]);
  });
});
