import { describe, expect, test } from '@jest/globals';
import { CODE, LIMIT_UNIT } from '../../../src/codec/messages.js';
import { Refusal } from '../../../src/service/refusal.js';
import { Decider, descriptor, headers } from '../../support/policy/decider.js';

const SECOND = 1_000_000;

const POLICY = `
domain: d
response_headers: [x-ratelimit, retry-after]
descriptors:
  - key: bucket
    rate_limit: { name: b, token_bucket: { max_tokens: 3, tokens_per_fill: 1, fill_interval: 20s } }
  - key: small
    rate_limit: { token_bucket: { max_tokens: 1, tokens_per_fill: 1, fill_interval: 50s } }
  - key: window
    rate_limit: { unit: minute, requests_per_unit: 2 }
  - key: free
    rate_limit: { unlimited: true }
  - key: exempt
  - key: quota
    quota_mode: true
    rate_limit: { token_bucket: { max_tokens: 1, fill_interval: 10s } }
  - key: shadow
    shadow_mode: true
    rate_limit: { token_bucket: { max_tokens: 1, fill_interval: 10s } }
`;

const bucket = descriptor(['bucket=x']);
const small = descriptor(['small=x']);

describe('statuses', () => {
  test('one for each descriptor, in order; those without a rule are OK without a limit', () => {
    const response = new Decider(POLICY).answer([
      descriptor(['nothing=x']),
      bucket,
      descriptor([]),
      descriptor(['free=x']),
      descriptor(['exempt=x']),
      descriptor(['bucket=x', 'more=y']),
    ]);
    expect(response.overallCode).toBe(CODE.OK);
    expect(response.statuses.map(({ code, currentLimit }) => [code, currentLimit?.name])).toEqual([
      [CODE.OK, undefined],
      [CODE.OK, 'b'],
      [CODE.OK, undefined],
      [CODE.OK, undefined],
      [CODE.OK, undefined],
      [CODE.OK, undefined],
    ]);
    expect(response.statuses[3]?.limitRemaining).toBe(0xffff_ffff);
  });

  test('a token bucket reports its capacity and the unit in which it fills', () => {
    const response = new Decider(POLICY).answer([bucket, small, descriptor(['window=x'])]);
    expect(response.statuses.map((status) => status.currentLimit)).toMatchObject([
      { name: 'b', requestsPerUnit: 3, unit: LIMIT_UNIT.minute },
      { name: '', requestsPerUnit: 1, unit: LIMIT_UNIT.unknown },
      { name: '', requestsPerUnit: 2, unit: LIMIT_UNIT.minute },
    ]);
  });

  test('an allowed bucket resets with its next token, a denied one when it can allow the request', () => {
    const decider = new Decider(POLICY);
    expect(decider.answer([bucket]).statuses[0]).toMatchObject({
      limitRemaining: 2,
      durationUntilResetSeconds: 20,
    });
    decider.clock.advance(0.5 * SECOND);
    expect(decider.answer([bucket], 2).statuses[0]).toMatchObject({
      code: CODE.OK,
      limitRemaining: 0,
      durationUntilResetSeconds: 20, // 19.5 s, rounded up
    });
    expect(decider.answer([bucket], 3).statuses[0]).toMatchObject({
      code: CODE.OVER_LIMIT,
      limitRemaining: 0,
      durationUntilResetSeconds: 60,
    });
  });

  test('monitored quotas would throttle only if all of them are over the limit', () => {
    const decider = new Decider(POLICY.replace('domain: d', 'domain: d\nphase: monitoring'));
    const pair = [descriptor(['quota=1']), descriptor(['quota=2'])];
    decider.answer(pair.slice(0, 1));
    const would = () => headers(decider.answer(pair))['x-ratelimit-will-be-throttled'];
    expect([would(), would()]).toEqual(['false', 'true']);
  });

  test('a quota over its limit counts as denied only if the request is denied', () => {
    const decider = new Decider(POLICY);
    const pair = [descriptor(['quota=1']), descriptor(['quota=2'])];
    decider.answer(pair.slice(0, 1));
    decider.answer(pair);
    expect(decider.observer.told.slice(1)).toEqual(['d quota OK would', 'd quota OK']);
  });
});

describe('overrides', () => {
  const override = (requestsPerUnit: number, unit: number, key = 'bucket') =>
    descriptor([`${key}=x`], { limit: { requestsPerUnit, unit } });

  test('apply without a matching rule, and to shadow rules', () => {
    const decider = new Decider(POLICY);
    expect(decider.answer([override(0, 1, 'nothing')]).overallCode).toBe(CODE.OVER_LIMIT);
    expect(decider.answer([override(0, 1, 'shadow')]).overallCode).toBe(CODE.OVER_LIMIT);
  });

  test('have the phase in effect', () => {
    const decider = new Decider(POLICY.replace('domain: d', 'domain: d\nphase: monitoring'));
    expect(decider.answer([override(0, 1)])).toMatchObject({ overallCode: CODE.OK });
  });

  test.each([0, 8, -1, 4_000_000_000])('with unit %p are refused, and no hits are taken', (unit) => {
    const decider = new Decider(POLICY);
    const refused = decider.ask([bucket, override(1, unit)]);
    expect(refused).toBeInstanceOf(Refusal);
    expect(refused).toMatchObject({
      kind: 'bad_request',
      message: expect.stringContaining('descriptors[1].limit.unit'),
    });
    expect(decider.answer([bucket], 3).overallCode).toBe(CODE.OK);
  });
});

describe('refusals', () => {
  test('more limits than allowed, in any number of descriptors', () => {
    const decider = new Decider(
      `domain: d
descriptors:
  - key: list
    rate_limits:
      - { unit: hour, requests_per_unit: 5 }
      - { unit: day, requests_per_unit: 50 }
  - { key: free, rate_limit: { unlimited: true } }
`,
      { maxLimits: 4 },
    );
    const [list, free] = [descriptor(['list=a']), descriptor(['free=a'])];
    expect(decider.answer([list, list, free, free]).statuses).toHaveLength(4);
    expect(decider.answer([list, free, list, list])).toMatchObject({
      overallCode: CODE.OVER_LIMIT,
      statuses: [],
    });
    // The denied request has not taken any hits.
    expect(decider.answer([list]).statuses[0]).toMatchObject({ limitRemaining: 2 });
    expect(decider.observer.told).toContain('d limits denied');
  });

  test('an unknown domain is OK, even with overrides and invalid entries', () => {
    const decider = new Decider(POLICY);
    const response = decider.answer(
      [descriptor(['=v']), descriptor(['a=b'], { limit: { requestsPerUnit: 0, unit: 99 } })],
      0,
      'other',
    );
    expect(response).toMatchObject({ overallCode: CODE.OK, responseHeadersToAdd: [] });
    expect(response.statuses).toHaveLength(2);
    expect(decider.observer.told).toEqual(['unknown other']);
  });
});

describe('headers', () => {
  test('describe the denying rule with the latest reset', () => {
    const decider = new Decider(POLICY);
    decider.answer([bucket, small], 1);
    decider.answer([bucket], 2);
    const response = decider.answer([bucket, small]);
    expect(headers(response)).toEqual({
      'x-ratelimit-limit': '1',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': String(1_700_000_000 + 50),
      'x-ratelimit-will-be-throttled': 'true',
      'retry-after': '50',
    });
  });

  test('of an allowed request describe the rule with the fewest remaining tokens, or the first of several', () => {
    const decider = new Decider(POLICY);
    expect(headers(decider.answer([bucket, descriptor(['window=x'])]))).toMatchObject({
      'x-ratelimit-limit': '2',
    });
    expect(headers(decider.answer([small, descriptor(['window=x'])]))).toMatchObject({
      'x-ratelimit-limit': '1',
    });
  });

  test('have the reset rounded up, and 0 for a full bucket', () => {
    const decider = new Decider(POLICY);
    decider.clock.advance(1);
    const peek = decider.answer([descriptor(['bucket=x'], { hitsAddend: 0 })]);
    expect(headers(peek)).toEqual({
      'x-ratelimit-limit': '3',
      'x-ratelimit-remaining': '3',
      'x-ratelimit-reset': '1700000001',
    });
  });

  test('are only sent if the file enables them', () => {
    const silent = POLICY.replace('response_headers: [x-ratelimit, retry-after]', '');
    expect(headers(new Decider(silent).answer([bucket], 9))).toEqual({});
  });
});

describe('phases', () => {
  const phased = (phase: string) =>
    new Decider(`
domain: d
phase: ${phase}
response_headers: [x-ratelimit]
descriptors:
  - key: a
    rate_limit: { token_bucket: { max_tokens: 1, fill_interval: 10s } }
  - key: live
    phase: active
    rate_limit: { token_bucket: { max_tokens: 2, fill_interval: 10s } }
`);
  const a = descriptor(['a=x']);

  test.each(['monitoring', 'grace_period'])(
    '%s denies no request, and reports the denial that it would cause',
    (phase) => {
      const decider = phased(phase);
      const fits = decider.answer([a]);
      expect(headers(fits)).toEqual({
        'x-ratelimit-limit': '1',
        'x-ratelimit-remaining': '0',
        'x-ratelimit-reset': '1700000010',
        'x-ratelimit-will-be-throttled': 'false',
      });
      const over = decider.answer([a]);
      expect(over).toMatchObject({ overallCode: CODE.OK, statuses: [{ code: CODE.OK }] });
      expect(headers(over)).toEqual({
        'x-ratelimit-limit': '1',
        'x-ratelimit-remaining': '0',
        'x-ratelimit-reset': '1700000010',
        'x-ratelimit-will-be-throttled': 'true',
      });
      expect(decider.observer.told).toEqual(['d a OK', 'd a OK would']);
    },
  );

  test('a schedule changes the phase at its times', () => {
    // The clock is at 2023-11-14T22:13:20Z.
    const decider = phased('{ grace_period: 2023-11-14T22:13:25Z, active: 2023-11-14T22:13:30Z }');
    const asked = () => {
      const response = decider.answer([descriptor(['a=x'], { hitsAddend: 2 })]);
      return [response.overallCode, headers(response)['x-ratelimit-will-be-throttled']];
    };
    expect(asked()).toEqual([CODE.OK, 'true']);
    decider.clock.stepWall(10 * SECOND - 1);
    expect(asked()).toEqual([CODE.OK, 'true']);
    decider.clock.stepWall(1);
    expect(asked()).toEqual([CODE.OVER_LIMIT, 'true']);
  });

  test('a monitored bucket over its limit does not prevent other takes, but an active one does', () => {
    const decider = phased('monitoring');
    const live = descriptor(['live=x']);
    decider.answer([a]);
    const mixed = decider.answer([a, live]);
    expect(mixed.overallCode).toBe(CODE.OK);
    expect(mixed.statuses[1]?.limitRemaining).toBe(1);
    expect(headers(mixed)['x-ratelimit-will-be-throttled']).toBe('true');
    const denied = decider.answer([descriptor(['a=y']), descriptor(['live=x'], { hitsAddend: 2 })]);
    expect(denied.overallCode).toBe(CODE.OVER_LIMIT);
    expect(decider.answer([descriptor(['a=y'])]).statuses[0]?.limitRemaining).toBe(0);
  });
});
