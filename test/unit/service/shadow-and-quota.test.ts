import { describe, expect, test } from '@jest/globals';
import { CODE } from '../../../src/codec/messages.js';
import { AwayStore } from '../../support/limiter/away-store.js';
import { Decider, descriptor, headers } from '../../support/policy/decider.js';

const POLICY = `
domain: d
descriptors:
  - key: window
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: bucket
    rate_limit: { token_bucket: { max_tokens: 1, fill_interval: 10s } }
  - key: other
    rate_limit: { token_bucket: { max_tokens: 2, fill_interval: 10s } }
  - key: shadow
    shadow_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: quota
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: quota2
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: shadow-quota
    shadow_mode: true
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: free
    rate_limit: { unlimited: true }
  - key: replaced
    rate_limit: { name: replaced, unit: minute, requests_per_unit: 1 }
  - key: replacing
    rate_limit: { replaces: [{ name: replaced }], unit: minute, requests_per_unit: 1 }
`;

const one = (key: string) => descriptor([`${key}=x`]);
const overridden = (key: string, requestsPerUnit: number) =>
  descriptor([`${key}=x`], { limit: { requestsPerUnit, unit: 2 } });
const codes = (decider: Decider, ...keys: string[]) => {
  const { overallCode, statuses } = decider.answer(keys.map(one));
  return [overallCode, ...statuses.map(({ code }) => code)];
};
const { OK, OVER_LIMIT } = CODE;

describe('SHADOW_MODE', () => {
  const shadowed = (policy = POLICY) => new Decider(policy, { answers: { shadowMode: true } });

  test('nobody is denied; statuses and a count say what would be', () => {
    const decider = shadowed();
    expect(codes(decider, 'window', 'other')).toEqual([OK, OK, OK]);
    expect(decider.observer.told).not.toContain('global shadow');
    decider.observer.told.length = 0;
    expect(codes(decider, 'window', 'bucket')).toEqual([OK, OVER_LIMIT, OK]);
    expect(decider.observer.told).toEqual(['global shadow', 'd window OK would', 'd bucket OK']);
  });

  test('an over bucket takes nothing, the others of the request take', () => {
    const decider = shadowed();
    codes(decider, 'bucket');
    expect(codes(decider, 'bucket', 'other')).toEqual([OK, OVER_LIMIT, OK]);
    expect(decider.answer([one('other')]).statuses[0]).toMatchObject({ code: OK, limitRemaining: 0 });
    decider.clock.advance(10_000_000);
    expect(codes(decider, 'bucket')).toEqual([OK, OK]);
  });

  test('covers overrides', () => {
    const decider = shadowed();
    const response = decider.answer([overridden('window', 0)]);
    expect(response).toMatchObject({ overallCode: OK, statuses: [{ code: OVER_LIMIT, limitRemaining: 0 }] });
    expect(decider.observer.told).toContain('global shadow');
  });

  test('counts nothing where only shadow rules or some of the quotas are over', () => {
    const decider = shadowed();
    codes(decider, 'shadow', 'quota');
    expect(codes(decider, 'shadow')).toEqual([OK, OK]);
    expect(codes(decider, 'quota', 'quota2')).toEqual([OK, OVER_LIMIT, OK]);
    expect(decider.observer.told).not.toContain('global shadow');
    expect(codes(decider, 'quota', 'quota2')).toEqual([OK, OVER_LIMIT, OVER_LIMIT]);
    expect(decider.observer.told).toContain('global shadow');
  });

  test('headers of the file are those of the monitoring phase', () => {
    const decider = shadowed(
      POLICY.replace('domain: d', 'domain: d\nresponse_headers: [x-ratelimit, retry-after]'),
    );
    expect(headers(decider.answer([one('window')]))).toMatchObject({
      'x-ratelimit-will-be-throttled': 'false',
    });
    expect(headers(decider.answer([one('window')]))).toEqual({
      'x-ratelimit-limit': '1',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '1700000040',
      'x-ratelimit-will-be-throttled': 'true',
    });
  });

  test('rules that answer deny while the store is away deny nobody, and those that answer error fail no call', () => {
    const decider = new Decider(
      `
domain: d
descriptors:
  - { key: deny, rate_limit: { on_store_failure: deny, unit: minute, requests_per_unit: 9 } }
  - { key: error, rate_limit: { unit: minute, requests_per_unit: 9 } }
`,
      { answers: { shadowMode: true }, store: new AwayStore() },
    );
    expect(codes(decider, 'deny')).toEqual([OK, OVER_LIMIT]);
    expect(decider.observer.told).toContain('global shadow');
    expect(codes(decider, 'deny', 'error')).toEqual([OK, OVER_LIMIT, OK]);
    expect(codes(decider, 'error')).toEqual([OK, OK]);
  });
});

describe('shadow_mode of a rule', () => {
  test('is OK with nothing left', () => {
    const decider = new Decider(POLICY);
    codes(decider, 'shadow');
    expect(decider.answer([one('shadow')])).toMatchObject({
      overallCode: OK,
      statuses: [{ code: OK, limitRemaining: 0, durationUntilResetSeconds: 40 }],
    });
  });
});

describe('quota_mode of a rule', () => {
  test('denies only when all quotas are over; statuses tell of each', () => {
    const decider = new Decider(POLICY);
    expect(codes(decider, 'quota')).toEqual([OK, OK]);
    expect(codes(decider, 'quota', 'quota2', 'nothing')).toEqual([OK, OVER_LIMIT, OK, OK]);
    expect(codes(decider, 'quota', 'quota2', 'nothing')).toEqual([OVER_LIMIT, OVER_LIMIT, OVER_LIMIT, OK]);
    expect(codes(decider, 'quota')).toEqual([OVER_LIMIT, OVER_LIMIT]);
  });

  test('in shadow mode it counts as one that passes, over or not', () => {
    const decider = new Decider(POLICY);
    codes(decider, 'quota');
    for (let i = 0; i < 3; i++) {
      expect(codes(decider, 'quota', 'shadow-quota')).toEqual([OK, OVER_LIMIT, OK]);
    }
    expect(codes(decider, 'quota')).toEqual([OVER_LIMIT, OVER_LIMIT]);
  });
});

describe('QUOTA_MODE', () => {
  const quotas = () => new Decider(POLICY, { answers: { quotaMode: true } });

  test('denies only when all limits of a request are over', () => {
    const decider = quotas();
    expect(codes(decider, 'window')).toEqual([OK, OK]);
    expect(codes(decider, 'window', 'bucket')).toEqual([OK, OVER_LIMIT, OK]);
    expect(codes(decider, 'window', 'bucket')).toEqual([OVER_LIMIT, OVER_LIMIT, OVER_LIMIT]);
  });

  test.each([
    ['without a rule', ['nothing']],
    ['of a replaced rule', ['replacing', 'replaced']],
    ['of a shadow rule', ['shadow']],
  ])('a descriptor %s is a quota that passes, so nobody is denied', (_name, keys) => {
    const decider = quotas();
    codes(decider, 'window', 'replacing');
    const response = decider.answer(['window', ...keys].map(one));
    expect([response.overallCode, response.statuses[0]?.code]).toEqual([OK, OVER_LIMIT]);
    decider.answer(['bucket', ...keys].map(one));
    decider.answer(['bucket', 'other', ...keys].map(one));
    // What fits is taken, as nobody is denied.
    expect(decider.answer([one('other')]).statuses[0]?.limitRemaining).toBe(0);
  });

  test('an unlimited descriptor is no quota', () => {
    const decider = quotas();
    codes(decider, 'window');
    expect(codes(decider, 'window', 'free')).toEqual([OVER_LIMIT, OVER_LIMIT, OK]);
    expect(codes(decider, 'free')).toEqual([OK, OK]);
  });

  test('covers overrides', () => {
    const decider = quotas();
    expect(decider.answer([overridden('window', 0), one('other')]).overallCode).toBe(OK);
    expect(decider.answer([overridden('window', 0)]).overallCode).toBe(OVER_LIMIT);
  });
});

describe('replaces', () => {
  test('the replaced rule counts nothing and answers OK without a limit', () => {
    const decider = new Decider(POLICY);
    const { statuses } = decider.answer([one('replaced'), one('replacing')]);
    expect(statuses[0]).toEqual({
      code: OK,
      currentLimit: undefined,
      limitRemaining: 0,
      durationUntilResetSeconds: undefined,
    });
    expect(codes(decider, 'replaced')).toEqual([OK, OK]);
  });

  test('an override in the place of a rule replaces nothing and is not replaced', () => {
    const decider = new Decider(POLICY);
    expect(
      decider
        .answer([one('replaced'), overridden('replacing', 5)])
        .statuses.map(({ currentLimit }) => currentLimit?.name),
    ).toEqual(['replaced', '']);
    expect(decider.answer([overridden('replaced', 5), one('replacing')]).statuses[0]).toMatchObject({
      limitRemaining: 4,
    });
  });
});
