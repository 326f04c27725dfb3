import { describe, expect, test } from '@jest/globals';
import { CODE } from '../../../src/codec/messages.js';
import { Refusal } from '../../../src/service/refusal.js';
import { UnavailableStore } from '../../support/limiter/unavailable-store.js';
import { Decider, type DeciderOptions, descriptor, headers } from '../../support/policy/decider.js';

const { OK, OVER_LIMIT } = CODE;

const bucket = (tokens: number, interval = '1h') =>
  `token_bucket: { max_tokens: ${tokens}, fill_interval: ${interval} }`;
const POLICY = `
domain: d
response_headers: [x-ratelimit, retry-after]
descriptors:
  - { key: half, enforce_percent: 50, rate_limit: { ${bucket(1)} } }
  - { key: tenth, enforce_percent: 0.1, rate_limit: { ${bucket(1)} } }
  - { key: never, enforce_percent: 0, rate_limit: { ${bucket(1)} } }
  - { key: always, enforce_percent: 100, rate_limit: { ${bucket(1)} } }
  - { key: plain, rate_limit: { ${bucket(5)} } }
  - { key: deny, enforce_percent: 50, rate_limit: { ${bucket(5)}, on_store_failure: deny } }
  - { key: shadow, enforce_percent: 50, shadow_mode: true, rate_limit: { ${bucket(1)} } }
  - { key: monitored, enforce_percent: 50, phase: monitoring, rate_limit: { ${bucket(1)} } }
  - { key: soon, enforce_percent: 50, phase: { active: "2023-11-14T22:14:20Z" }, rate_limit: { ${bucket(1)} } }
  - { key: quota50, quota_mode: true, enforce_percent: 50, rate_limit: { ${bucket(1)} } }
  - { key: quota20, quota_mode: true, enforce_percent: 20, rate_limit: { ${bucket(2)} } }
  - { key: quota, quota_mode: true, rate_limit: { ${bucket(2)} } }
  - key: list
    enforce_percent: 50
    rate_limits:
      - { name: soft, ${bucket(1)} }
      - { name: hard, ${bucket(3)}, enforce_percent: 100 }
`;

/** Returns a random source with the numbers from `percents`, and then the last number forever. Counts its calls. */
function chance(...percents: number[]) {
  const drawn = { times: 0 };
  const random = () => (percents[Math.min(drawn.times++, percents.length - 1)] as number) / 100;
  return { drawn, random };
}

const one = (key: string) => descriptor([`${key}=x`]);
/** Returns a decider that draws `percents`. */
const drawing = (...percents: number[]) => new Decider(POLICY, { random: chance(...percents).random });
const codes = (decider: Decider, ...keys: string[]) => {
  const { overallCode, statuses } = decider.answer(keys.map(one));
  return [overallCode, ...statuses.map(({ code }) => code)];
};

describe('enforce_percent', () => {
  test('a draw below it denies, a draw at or above it does not', () => {
    const decider = drawing(0, 49.999, 50, 99.999);
    codes(decider, 'half');
    expect(codes(decider, 'half')).toEqual([OVER_LIMIT, OVER_LIMIT]);
    expect(codes(decider, 'half')).toEqual([OK, OK]);
    expect(codes(decider, 'half')).toEqual([OK, OK]);
  });

  test('can be a decimal', () => {
    const decider = drawing(99, 0.099, 0.1);
    codes(decider, 'tenth');
    expect(codes(decider, 'tenth')).toEqual([OVER_LIMIT, OVER_LIMIT]);
    expect(codes(decider, 'tenth')).toEqual([OK, OK]);
  });

  test('0 never denies and 100 always denies, without a draw', () => {
    const { drawn, random } = chance(0);
    const decider = new Decider(POLICY, { random });
    codes(decider, 'never');
    expect(codes(decider, 'never')).toEqual([OK, OK]);
    drawn.times = 0;
    codes(decider, 'always');
    expect(codes(decider, 'always')).toEqual([OVER_LIMIT, OVER_LIMIT]);
    expect(drawn.times).toBe(0);
  });

  test('a denial that is not enforced takes no tokens, but other limits do', () => {
    const decider = drawing(99);
    codes(decider, 'half', 'plain');
    codes(decider, 'half', 'plain');
    decider.observer.descriptors.length = 0;
    decider.answer(['half', 'plain'].map((key) => descriptor([`${key}=x`], { hitsAddend: 0 })));
    expect(decider.observer.descriptors).toMatchObject([{ used: 1, shadowed: true }, { used: 2 }]);
  });

  test('an unenforced denial is reported as in monitoring, and counted as would be throttled', () => {
    const decider = drawing(99, 99, 0);
    expect(headers(decider.answer([one('half')]))).toMatchObject({
      'x-ratelimit-will-be-throttled': 'false',
    });
    const passed = decider.answer([one('half')]);
    expect(passed).toMatchObject({ overallCode: OK, statuses: [{ code: OK, limitRemaining: 0 }] });
    expect(headers(passed)).toEqual({
      'x-ratelimit-limit': '1',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '1700003600',
      'x-ratelimit-will-be-throttled': 'true',
    });
    expect(headers(decider.answer([one('half')]))).toMatchObject({
      'retry-after': '3600',
      'x-ratelimit-will-be-throttled': 'true',
    });
    expect(decider.observer.told).toEqual(['d half OK', 'd half OK would', 'd half OVER_LIMIT']);
  });

  test('one draw applies to the whole request', () => {
    const { drawn, random } = chance(10);
    const decider = new Decider(POLICY, { random });
    codes(decider, 'half', 'never', 'list');
    expect(drawn.times).toBe(1);
  });

  test('an observed rule does not draw', () => {
    const { drawn, random } = chance(0);
    const decider = new Decider(POLICY, { random });
    for (const key of ['shadow', 'monitored']) {
      codes(decider, key);
      expect(codes(decider, key)).toEqual([OK, OK]);
    }
    expect(drawn.times).toBe(0);
  });

  test('a schedule applies first: partial enforcement starts when it is active', () => {
    const decider = drawing(0, 0, 99);
    codes(decider, 'soon');
    expect(codes(decider, 'soon')).toEqual([OK, OK]);
    decider.clock.advance(60_000_000);
    expect(codes(decider, 'soon')).toEqual([OVER_LIMIT, OVER_LIMIT]);
    decider.clock.advance(60_000_000);
    const passing = drawing(99);
    passing.clock.advance(60_000_000);
    codes(passing, 'soon');
    expect(codes(passing, 'soon')).toEqual([OK, OK]);
  });

  test('an item of a list has its own percentage', () => {
    const decider = drawing(99);
    expect([1, 2, 3, 4].map(() => codes(decider, 'list')[0])).toEqual([OK, OK, OK, OVER_LIMIT]);
    expect(decider.answer([one('list')]).statuses[0]).toMatchObject({ currentLimit: { name: 'hard' } });
  });

  test('a limit override is always enforced', () => {
    const decider = drawing(99);
    const limited = descriptor(['half=x'], { limit: { requestsPerUnit: 0, unit: 2 } });
    expect(decider.answer([limited]).overallCode).toBe(OVER_LIMIT);
  });

  test('SHADOW_MODE reports the result of the draw in the status', () => {
    const decider = new Decider(POLICY, { random: chance(0, 0, 99).random, answers: { shadowMode: true } });
    codes(decider, 'half');
    expect(codes(decider, 'half')).toEqual([OK, OVER_LIMIT]);
    expect(codes(decider, 'half')).toEqual([OK, OK]);
  });

  test('a denial because of an unavailable store is enforced in part, too', () => {
    const options: DeciderOptions = { store: new UnavailableStore(), random: chance(0, 99, 0, 99).random };
    const decider = new Decider(POLICY, options);
    expect(codes(decider, 'deny')).toEqual([OVER_LIMIT, OVER_LIMIT]);
    expect(codes(decider, 'deny')).toEqual([OK, OK]);
    expect(decider.ask([one('half')])).toBeInstanceOf(Refusal);
    expect(codes(decider, 'half')).toEqual([OK, OK]);
  });
});

describe('enforce_percent of quotas, which deny together', () => {
  test('of a single quota works as for any rule', () => {
    const decider = drawing(0, 49, 50);
    codes(decider, 'quota50');
    expect(codes(decider, 'quota50')).toEqual([OVER_LIMIT, OVER_LIMIT]);
    expect(codes(decider, 'quota50')).toEqual([OK, OK]);
  });

  test('the highest percentage applies to all quotas', () => {
    const decider = drawing(99, 99, 49, 50);
    codes(decider, 'quota50', 'quota20');
    codes(decider, 'quota20');
    expect(codes(decider, 'quota50', 'quota20')).toEqual([OVER_LIMIT, OVER_LIMIT, OVER_LIMIT]);
    expect(codes(decider, 'quota50', 'quota20')).toEqual([OK, OK, OK]);
  });

  test('a quota with remaining hits allows the request, for any draw', () => {
    for (const drawn of [0, 99]) {
      const decider = drawing(drawn);
      codes(decider, 'quota');
      codes(decider, 'quota');
      expect(codes(decider, 'quota')[0]).toBe(OVER_LIMIT);
      expect(codes(decider, 'quota', 'quota50')[0]).toBe(OK);
    }
  });

  test('QUOTA_MODE draws for the rules that it turns into quotas', () => {
    const passing = new Decider(POLICY, { random: chance(99).random, answers: { quotaMode: true } });
    codes(passing, 'half');
    expect(codes(passing, 'half')).toEqual([OK, OK]);
    const denying = new Decider(POLICY, { random: chance(0).random, answers: { quotaMode: true } });
    codes(denying, 'half');
    expect(codes(denying, 'half')).toEqual([OVER_LIMIT, OVER_LIMIT]);
  });
});
